//! Functions' arguments as messages: the registry has names and types, [`NUMBERS`] the number of each message and how
//! NNabla spells each argument.

use super::message::{FieldValue, Message, broken};
use super::schema::FieldKind;
use crate::function::{ArgDef, ArgKind, ArgValue, Def, registry};
use nnrs_kernels::error::Result;

/// Of each function with arguments: the number of its field in `Function`, its name, and a letter an argument: `i` int, `f`
/// float, `d` double, `b` flag, `s` text, `S` a `Shape`, `I` and `F` lists. Arguments of nnrs's own, which come last, have none.
const NUMBERS: &str = "
    1001 Affine i, 1002 RNN isfbb, 1003 LSTM ifbb, 1004 GRU ifbb, 1005 Convolution iSSSib,
    1007 DepthwiseConvolution iSSSi, 1008 Deconvolution iSSSibS, 1009 DepthwiseDeconvolution iSSSi,
    1010 DeformableConvolution iSSSiib, 1012 MaxPooling SSbSb, 1013 AveragePooling SSbSbb, 1015 SumPooling SSbSb,
    1016 Unpooling Sb, 1018 RoiAlign SFib, 1022 ReLU b, 1023 LeakyReLU fb, 1024 Softmax i, 1025 LogSoftmax i, 1026 ELU d,
    1027 SELU dd, 1028 CReLU i, 1029 CELU di, 1030 PReLU i, 1037 SoftPlus d, 1042 BatchNormalization Iffbbb,
    1043 GroupNormalization iiIfbb, 1044 InstanceNormalization iIfbb, 1045 LayerNormalization Ifbb,
    1046 NormNormalization fIf, 1048 TensorNormalization Ifbb, 1049 WeightNormalization if,
    1050 WeightStandardization if, 1051 SpectralNorm iifbb, 1052 MeanSubtraction ib, 1054 ClipGradByNorm fI, 1055 Sum Ib,
    1056 CumSum ibb, 1057 Mean Ib, 1058 Max Ibbb, 1059 Min Ibbb, 1060 Norm fIb, 1061 Prod Ib, 1062 CumProd ibb,
    1065 Add2 b, 1067 BcAdd2 b, 1068 Sub2 b, 1069 Mul2 b, 1071 Div2 b, 1072 Pow2 b, 1073 AddScalar db, 1074 MulScalar db,
    1075 PowScalar db, 1076 RSubScalar d, 1077 RDivScalar d, 1078 RPowScalar d, 1079 Sign f, 1082 MinimumScalar d,
    1083 MaximumScalar d, 1093 SearchSorted b, 1094 LogicalAndScalar b, 1095 LogicalOrScalar b, 1096 LogicalXorScalar b,
    1097 EqualScalar d, 1098 NotEqualScalar d, 1099 GreaterEqualScalar d, 1100 GreaterScalar d, 1101 LessEqualScalar d,
    1102 LessScalar d, 1106 ResetNaN d, 1107 ResetInf d, 1109 Constant fS, 1110 Arange fff, 1111 Linspace ffi,
    1116 BatchMatmul bb, 1117 Round, 1118 Ceil, 1119 Floor, 1133 Concatenate i, 1134 Split i, 1135 Stack i,
    1136 Slice III, 1137 Pad Isf, 1138 Transpose I, 1139 Broadcast S, 1140 BroadcastTo i, 1141 Tile I, 1142 OneHot S,
    1143 Flip I, 1144 Shift Is, 1145 Sort ibbb, 1146 Reshape Sb, 1147 Shape ii, 1150 Trilu ib, 1151 Meshgrid b,
    1155 BatchCholesky b, 1157 Gather ii, 1160 ScatterNd Ib, 1161 ScatterAdd i, 1163 BoolFill f,
    1164 PackPaddedSequence b, 1165 PadPackedSequence bfi, 1167 Interpolate Isbbbb, 1168 ONNXResize FFIssfifs,
    1169 FFT ib, 1170 IFFT ib, 1171 STFT iiisbsb, 1172 ISTFT iiisbsb, 1173 Dropout di, 1174 TopKData ibbibb,
    1175 TopKGrad ibi, 1176 Rand ffSi, 1177 Randint iiSi, 1178 Randn ffSi, 1179 RandBinomial ifSi, 1180 RandBeta ffSi,
    1181 RandGamma ffSi, 1182 RandomChoice Sbi, 1183 RandomCrop Sii, 1184 RandomFlip Iii, 1185 RandomShift Isfii,
    1186 RandomErase fFFFibbiibb, 1187 ImageAugmentation SSfffffbbfbffbfi, 1190 SoftmaxCrossEntropy i,
    1191 CategoricalCrossEntropy i, 1194 HuberLoss f, 1195 EpsilonInsensitiveLoss f, 1196 KLMultinomial i,
    1197 AffineGrid Ib, 1198 WarpByGrid ssbb, 1202 BinaryConnectAffine if, 1203 BinaryConnectConvolution iSSSif,
    1204 BinaryWeightAffine if, 1205 BinaryWeightConvolution iSSSif, 1206 INQAffine iiIsi, 1207 INQConvolution iSSSiiIsi,
    1208 FixedPointQuantize bifb, 1209 MinMaxQuantize fbbbf, 1210 Pow2Quantize bbiib, 1211 Prune f,
    1212 QuantizeLinear sbi, 1214 TopNError ii, 1216 ConfusionMatrix i, 1217 VATNoise if, 1219 Sink b,
    1220 NmsDetection2d ffb, 1221 ONNXNonMaxSuppression iiff, 1222 MaxPoolingBackward SSbSb, 1223 PatchCorrelation SSSSS,
    1224 Unique bibbbb, 1225 EyeLike i, 1226 Mod2 b, 1227 BitShift s,
    1228 Einsum s";

/// Functions of NNabla that are several in nnrs, as lines of the schema.
const COMPOSED: &[(u64, &str, &str, &[&str])] = &[
    (
        1006,
        "FusedConvolution",
        "fused_convolution",
        &[
            "1 base_axis int",
            "2 pad Shape",
            "3 stride Shape",
            "4 dilation Shape",
            "5 group int",
            "6 channel_last flag",
            "7 decay_rate float",
            "8 eps float",
            "9 batch_stat flag",
            "10 nonlinearity text",
            "11 nonlinearity_args [float]",
            "12 pad_mode text",
            "13 constant_value float",
        ],
    ),
    (
        1041,
        "FusedBatchNormalization",
        "fused_batch_normalization",
        &["1 axes [int]", "2 decay_rate float", "3 eps float", "4 batch_stat flag", "5 nonlinearity text"],
    ),
    (
        1047,
        "SyncBatchNormalization",
        "sync_batch_normalization",
        &[
            "1 comm Communicator",
            "2 group text",
            "3 axes [int]",
            "4 decay_rate float",
            "5 eps float",
            "6 batch_stat flag",
        ],
    ),
];

/// NNabla's name of an argument: reductions over several axes say `axes` and `keep_dims`.
fn name_of(arg: &ArgDef, letter: char) -> &'static str {
    match (arg.name, letter) {
        ("axis", 'I') => "axes",
        ("keepdims", _) => "keep_dims",
        (name, _) => name,
    }
}

fn kind_of(letter: char) -> &'static str {
    match letter {
        'i' => "int",
        'f' => "float",
        'd' => "double",
        'b' => "flag",
        's' => "text",
        'S' => "Shape",
        'I' => "[int]",
        _ => "[float]",
    }
}

/// Lines of the schema, as [`schema`](super::schema) spells them: the messages, and the fields of `Function` that hold them.
pub(super) fn spelled() -> (Vec<(String, Vec<String>)>, Vec<String>) {
    let (mut messages, mut fields) = (Vec::new(), Vec::new());
    let mut add = |number: u64, name: &str, snake: &str, lines: Vec<String>| {
        fields.push(format!("{number} {snake}_param ?{name}Parameter"));
        messages.push((format!("{name}Parameter"), lines));
    };
    for entry in NUMBERS.split(',') {
        let mut words = entry.split_whitespace();
        let (Some(number), Some(name)) = (words.next().and_then(|n| n.parse().ok()), words.next()) else { continue };
        let Some(def) = registry().find(|d| d.name == name) else { continue };
        let letters = words.next().unwrap_or("").chars().zip(def.args).enumerate();
        let line = |(i, (letter, arg)): (usize, (char, &ArgDef))| {
            format!("{} {} {}", i + 1, name_of(arg, letter), kind_of(letter))
        };
        add(number, name, def.snake, letters.map(line).collect());
    }
    for (number, name, snake, lines) in COMPOSED {
        add(*number, name, snake, lines.iter().map(|l| l.to_string()).collect());
    }
    (messages, fields)
}

/// The message of a function's arguments, as a field of `Function`.
fn field_of(def: &Def) -> String {
    format!("{}_param", def.snake)
}

/// Notes the arguments of a function, given by NNabla's names, in a `Function`.
pub(super) fn write(to: &mut Message, def: &Def, arguments: &[(&'static str, ArgValue)]) -> Result<()> {
    let Some(mut message) = Message::new(&format!("{}Parameter", def.name)).ok() else { return Ok(()) };
    for (name, value) in arguments {
        let Some(field) = message.spec().find(name) else { continue };
        let spec = &message.spec().fields[field];
        let is_shape = matches!(spec.kind, FieldKind::Message(_));
        match value {
            ArgValue::Bool(flag) => message.set(name, *flag),
            ArgValue::Int(n) if is_shape => message.set_sizes(name, vec![*n])?,
            ArgValue::Int(n) if spec.repeated => message.set(name, FieldValue::Ints(vec![*n])),
            ArgValue::Int(n) if matches!(spec.kind, FieldKind::Float | FieldKind::Double) => {
                message.set(name, *n as f64)
            }
            ArgValue::Int(n) => message.set(name, *n),
            ArgValue::Float(n) if spec.kind == FieldKind::Float => message.set(name, f64::from(*n as f32)),
            ArgValue::Float(n) if spec.kind == FieldKind::Double => message.set(name, *n),
            ArgValue::Float(n) => message.set(name, *n as i64),
            ArgValue::Str(text) => message.set(name, text.as_str()),
            ArgValue::Ints(list) if is_shape => message.set_sizes(name, list.clone())?,
            ArgValue::Ints(list) if spec.kind == FieldKind::Int => message.set(name, FieldValue::Ints(list.clone())),
            ArgValue::Ints(list) => message.set(name, FieldValue::Floats(list.iter().map(|n| *n as f32).collect())),
            ArgValue::Floats(list) => message.set(name, FieldValue::Floats(list.iter().map(|n| *n as f32).collect())),
            ArgValue::None | ArgValue::Object(_) => continue,
        };
    }
    if !message.spec().fields.is_empty() {
        to.set(&field_of(def), FieldValue::Message(message));
    }
    Ok(())
}

/// The arguments of a `Function`, by the registry's names. What is not set is 0 or empty, as in NNabla.
pub(super) fn read(function: &Message, def: &'static Def) -> Result<Vec<(&'static str, ArgValue)>> {
    let Ok(empty) = Message::new(&format!("{}Parameter", def.name)) else { return Ok(Vec::new()) };
    let message = function.message(&field_of(def)).unwrap_or(&empty);
    let fields = def.args.iter().zip(&message.spec().fields);
    fields
        .map(|(arg, field)| Ok((arg.name, argument(message, arg, &field.name, field.kind, field.repeated)?)))
        .collect()
}

fn argument(message: &Message, arg: &ArgDef, name: &str, kind: FieldKind, repeated: bool) -> Result<ArgValue> {
    Ok(match kind {
        FieldKind::Message(_) => ArgValue::Ints(message.sizes(name).to_vec()),
        FieldKind::Int if repeated => ArgValue::Ints(message.ints(name).to_vec()),
        FieldKind::Float if repeated => ArgValue::Floats(message.floats(name).iter().map(|n| shortest(*n)).collect()),
        FieldKind::Float => ArgValue::Float(shortest(message.number(name) as f32)),
        FieldKind::Double => ArgValue::Float(message.number(name)),
        FieldKind::Flag if arg.kind == ArgKind::Bool => ArgValue::Bool(message.int(name) != 0),
        FieldKind::Flag | FieldKind::Int | FieldKind::Count => ArgValue::Int(message.int(name)),
        FieldKind::Text if arg.kind == ArgKind::Str => ArgValue::Str(message.text(name).to_string()),
        FieldKind::Text => return Err(broken(format!("argument '{}' is no text", arg.name))),
    })
}

/// The number that the float was made of, most likely: 1e-5 and not 9.99999974737875e-6.
pub(super) fn shortest(n: f32) -> f64 {
    format!("{n:?}").parse().unwrap_or(f64::from(n))
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    nnrs_kernels::unit_test!(every_entry_is_a_function_with_these_arguments);
    fn every_entry_is_a_function_with_these_arguments() {
        for entry in NUMBERS.split(',') {
            let words: Vec<&str> = entry.split_whitespace().collect();
            let def = registry().find(|d| d.name == words[1]).expect(words[1]);
            assert!(words.get(2).map_or(0, |w| w.len()) <= def.args.len(), "{}", words[1]);
        }
    }
}
