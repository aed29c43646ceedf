//! The messages of NNabla's files: their fields by number, name and type, as its descriptor documents them.
//!
//! Messages are written down in [`TABLE`], the arguments of functions in [`arguments`](super::arguments), where their
//! names are the registry's. All else, bytes, text and Python's objects, is read off this table.

use super::arguments;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A whole number with a sign.
    Int,
    /// A whole number of 32 bits without a sign.
    Count,
    /// A number of 32 bits.
    Float,
    /// A number of 64 bits.
    Double,
    /// True or false.
    Flag,
    /// Text.
    Text,
    /// A message of this number in the schema.
    Message(usize),
}

/// A field of a message.
#[derive(Debug)]
pub struct FieldSpec {
    /// Its number in the binary format.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: FieldKind,
    /// Whether it is a list.
    pub repeated: bool,
    /// Of the fields that share a group, a message has one.
    pub one_of: bool,
}

/// A kind of message.
#[derive(Debug)]
pub struct MessageSpec {
    /// NNabla's name of it.
    pub name: String,
    /// Its fields, in the order of their numbers.
    pub fields: Vec<FieldSpec>,
}

impl MessageSpec {
    /// The place of a field, by its name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|f| f.name == name)
    }

    /// The place of a field, by its number.
    pub fn find_number(&self, number: u64) -> Option<usize> {
        self.fields.binary_search_by_key(&number, |f| f.number).ok()
    }
}

/// A message a paragraph: its name, then number, name and type of each field; a type in brackets is a list. `int`, `count`,
/// `float`, `double`, `flag` and `text` are plain values; `?` marks fields of which a message has one at most.
const TABLE: &str = "
Shape: 1 dim [int]
Communicator:
Context: 1 backends [text], 2 array_class text, 3 device_id text, 4 backend text, 5 compute_backend text
NNablaProtoBuf: 1 version text, 2 global_config GlobalConfig, 10 training_config TrainingConfig, 100 network [Network],
    200 parameter [Parameter], 300 dataset [Dataset], 400 optimizer [Optimizer], 500 monitor [Monitor],
    600 executor [Executor]
GlobalConfig: 1 default_context Context
TrainingConfig: 1 max_epoch int, 2 iter_per_epoch int, 100 save_best flag, 200 monitor_interval int
Network: 1 name text, 10 batch_size int, 11 repeat_info [RepeatInfo], 100 variable [Variable], 200 function [Function]
RepeatInfo: 1 id text, 2 times int
Variable: 1 name text, 2 type text, 3 repeat_id [text], 20 shape Shape, 100 initializer Initializer
Initializer: 2 type text, 10 multiplier float
Parameter: 1 variable_name text, 20 shape Shape, 100 data [float], 101 need_grad flag
Dataset: 1 name text, 2 type text, 10 uri text, 20 batch_size int, 30 cache_dir text, 31 overwrite_cache flag,
    32 create_cache_explicitly flag, 100 shuffle flag, 101 no_image_normalization flag, 200 variable [text]
Optimizer: 1 name text, 3 order int, 10 network_name text, 20 dataset_name [text], 30 solver Solver,
    40 update_interval int, 50 data_variable [DataVariable], 60 generator_variable [GeneratorVariable],
    70 loss_variable [LossVariable], 80 parameter_variable [ParameterVariable], 100 start_iter int, 101 end_iter int
SolverStateParameter: 20 shape Shape, 100 data [float]
StateParameterEntry: 1 key text, 2 value SolverStateParameter
SolverState: 1 t count, 2 state_parameter [StateParameterEntry]
StatesEntry: 1 key text, 2 value SolverState
SgdParameter: 1 lr float
SgdWParameter: 1 lr float, 2 momentum float, 3 wd float
MomentumParameter: 1 lr float, 2 momentum float
LarsParameter: 1 lr float, 2 momentum float, 3 coefficient float, 4 eps float
NesterovParameter: 1 lr float, 2 momentum float
AdadeltaParameter: 1 lr float, 2 decay float, 3 eps float
AdagradParameter: 1 lr float, 2 eps float
AdaBeliefParameter: 1 alpha float, 2 beta1 float, 3 beta2 float, 4 eps float, 5 wd float, 6 amsgrad flag,
    7 weight_decouple flag, 8 fixed_decay flag, 9 rectify flag
RMSpropParameter: 1 lr float, 2 decay float, 3 eps float
RMSpropGravesParameter: 1 lr float, 2 decay float, 3 momentum float, 4 eps float
AdamParameter: 1 alpha float, 2 beta1 float, 3 beta2 float, 4 eps float
AdamWParameter: 1 alpha float, 2 beta1 float, 3 beta2 float, 4 eps float, 5 wd float
AdaBoundParameter: 1 alpha float, 2 beta1 float, 3 beta2 float, 4 eps float, 5 final_lr float, 6 gamma float
AdamaxParameter: 1 alpha float, 2 beta1 float, 3 beta2 float, 4 eps float
AMSGRADParameter: 1 alpha float, 2 beta1 float, 3 beta2 float, 4 eps float, 5 bias_correction flag
AMSBoundParameter: 1 alpha float, 2 beta1 float, 3 beta2 float, 4 eps float, 5 final_lr float, 6 gamma float,
    7 bias_correction flag
LambParameter: 1 eta float, 2 beta1 float, 3 beta2 float, 4 gamma_l float, 5 gamma_u float, 6 eps float,
    7 bias_correction flag
LionParameter: 1 lr float, 2 beta1 float, 3 beta2 float
PolynomialSchedulerParameter: 1 max_iter float, 2 power float
CosineSchedulerParameter: 1 max_iter float
ExponentialSchedulerParameter: 1 gamma float, 2 iter_interval int
StepSchedulerParameter: 1 gamma float, 2 iter_steps [int]
CustomSchedulerParameter: 1 max_iter float, 10 network_name text, 50 data_variable [DataVariable],
    80 output_variable [OutputVariable]
LinearWarmupSchedulerParameter: 1 warmup_iter int
Solver: 2 type text, 10 context Context, 20 weight_decay float, 30 lr_decay float, 31 lr_decay_interval int,
    40 states [StatesEntry], 100 sgd_param ?SgdParameter, 101 sgdw_param ?SgdWParameter,
    102 momentum_param ?MomentumParameter, 103 lars_param ?LarsParameter, 104 nesterov_param ?NesterovParameter,
    105 adadelta_param ?AdadeltaParameter, 106 adagrad_param ?AdagradParameter, 107 adabelief_param ?AdaBeliefParameter,
    108 rmsprop_param ?RMSpropParameter, 109 rmsprop_graves_param ?RMSpropGravesParameter, 110 adam_param ?AdamParameter,
    111 adamw_param ?AdamWParameter, 112 adabound_param ?AdaBoundParameter, 113 adamax_param ?AdamaxParameter,
    114 amsgrad_param ?AMSGRADParameter, 115 amsbound_param ?AMSBoundParameter, 116 lamb_param ?LambParameter,
    117 lion_param ?LionParameter, 200 lr_scheduler_type text, 210 polynomial_scheduler_param PolynomialSchedulerParameter,
    211 cosine_scheduler_param CosineSchedulerParameter, 212 exponential_scheduler_param ExponentialSchedulerParameter,
    213 step_scheduler_param StepSchedulerParameter, 299 custom_scheduler_param CustomSchedulerParameter,
    300 lr_warmup_scheduler_type text, 310 linear_warmup_scheduler_param LinearWarmupSchedulerParameter
DataVariable: 1 variable_name text, 3 data_name text
GeneratorVariable: 1 variable_name text, 2 type text, 3 multiplier float
LossVariable: 1 variable_name text
ParameterVariable: 1 variable_name text, 2 learning_rate_multiplier float
Monitor: 1 name text, 10 network_name text, 20 dataset_name [text], 50 data_variable [DataVariable],
    60 generator_variable [GeneratorVariable], 70 monitor_variable [MonitorVariable]
MonitorVariable: 1 variable_name text, 2 type text, 3 data_name text, 100 multiplier float
Executor: 1 name text, 10 network_name text, 20 num_evaluations int, 21 repeat_evaluation_type text,
    30 need_back_propagation flag, 50 data_variable [DataVariable], 60 generator_variable [GeneratorVariable],
    70 loss_variable [LossVariable], 80 output_variable [OutputVariable], 90 parameter_variable [ParameterVariable],
    101 no_image_normalization flag
OutputVariable: 1 variable_name text, 2 type text, 3 data_name text
RepeatParameter: 1 repeat_id text, 2 times int
RecurrentParameter: 1 repeat_id text, 2 length int, 3 axis int
Function: 1 name text, 2 type text, 3 repeat_id [text], 10 context Context, 20 input [text], 30 output [text],
    100 repeat_param RepeatParameter, 101 recurrent_param RecurrentParameter";

static SCHEMA: LazyLock<Vec<MessageSpec>> = LazyLock::new(read);

/// All messages; a [`FieldKind::Message`] is a place in this list.
pub fn messages() -> &'static [MessageSpec] {
    &SCHEMA
}

/// The message of this name.
pub fn find(name: &str) -> Option<&'static MessageSpec> {
    SCHEMA.iter().find(|m| m.name == name)
}

/// The whole of a file.
pub fn root() -> &'static MessageSpec {
    // The table has it, as a test of this file says.
    find("NNablaProtoBuf").unwrap_or(&SCHEMA[0])
}

/// A line of the table: a message's name, and its fields as text.
fn lines() -> Vec<(String, Vec<String>)> {
    let joined = TABLE.trim().replace(",\n", ",");
    let own = joined.lines().filter_map(|line| line.split_once(':')).map(|(name, fields)| {
        let fields = fields.split(',').map(|f| f.trim().to_string()).filter(|f| !f.is_empty());
        (name.to_string(), fields.collect::<Vec<_>>())
    });
    let mut lines: Vec<_> = own.collect();
    let (messages, fields) = arguments::spelled();
    if let Some((_, function)) = lines.iter_mut().find(|(name, _)| name == "Function") {
        function.extend(fields);
    }
    lines.extend(messages);
    lines
}

fn read() -> Vec<MessageSpec> {
    let lines = lines();
    let places: HashMap<&str, usize> = lines.iter().enumerate().map(|(i, (name, _))| (name.as_str(), i)).collect();
    let message = |(name, fields): &(String, Vec<String>)| {
        let mut fields: Vec<FieldSpec> = fields.iter().filter_map(|f| field(f, &places)).collect();
        fields.sort_by_key(|f| f.number);
        MessageSpec { name: name.clone(), fields }
    };
    lines.iter().map(message).collect()
}

fn field(text: &str, places: &HashMap<&str, usize>) -> Option<FieldSpec> {
    let mut words = text.split(' ');
    let (number, name, kind) = (words.next()?.parse().ok()?, words.next()?.to_string(), words.next()?);
    let (repeated, one_of) = (kind.starts_with('['), kind.starts_with('?'));
    let kind = match kind.trim_matches(['[', ']', '?']) {
        "int" => FieldKind::Int,
        "count" => FieldKind::Count,
        "float" => FieldKind::Float,
        "double" => FieldKind::Double,
        "flag" => FieldKind::Flag,
        "text" => FieldKind::Text,
        message => FieldKind::Message(*places.get(message)?),
    };
    Some(FieldSpec { number, name, kind, repeated, one_of })
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    nnrs_kernels::unit_test!(every_line_of_the_table_is_read);
    fn every_line_of_the_table_is_read() {
        for ((name, fields), message) in lines().iter().zip(messages()) {
            assert_eq!((name, fields.len()), (&message.name, message.fields.len()));
        }
        assert_eq!(root().name, "NNablaProtoBuf");
    }

    nnrs_kernels::unit_test!(a_function_of_a_loop_has_arguments_too);
    fn a_function_of_a_loop_has_arguments_too() {
        let f = find("Function").unwrap();
        let one_of = |name: &str| f.fields[f.find(name).unwrap()].one_of;
        assert!(one_of("affine_param") && !one_of("repeat_param") && !one_of("recurrent_param"));
    }

    nnrs_kernels::unit_test!(numbers_differ);
    fn numbers_differ() {
        for m in messages() {
            assert!(m.fields.windows(2).all(|f| f[0].number < f[1].number), "{}", m.name);
        }
    }
}
