//! What recurrent layers share: arguments and shapes, and the gradient's rule, by the steps as functions of their own.

use crate::function::random::DropoutAgain;
use crate::function::{ArgValue, Described, Grad, Resolved, call_one, with_defaults};
use crate::functions as f;
use crate::graph::{self, Variable};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::recurrent as kernel;
use nnrs_kernels::kernel::recurrent::Cell;
use nnrs_kernels::random::RandomSeed;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

/// The arguments of a recurrent layer.
pub(super) struct Layers {
    pub(super) cell: Cell,
    pub(super) num_layers: i64,
    pub(super) dropout: Option<f64>,
    pub(super) bidirectional: bool,
    pub(super) training: bool,
}

/// The arguments, with what None stands for.
pub(super) fn used(f: &impl Described) -> Vec<(&'static str, ArgValue)> {
    with_defaults(f, &[("dropout", ArgValue::Float(0.0))])
}

fn check(name: &'static str, given: &Shape, want: impl Into<Shape>, axes: &str) -> Result<()> {
    let want = want.into();
    if *given == want {
        return Ok(());
    }
    Err(Error::shape(name, format!("shape {want}")).actual(given).hint(format!("{name} has the axes {axes}")))
}

impl Layers {
    /// Numbers are dropped at random.
    pub(super) fn drops(&self) -> bool {
        self.training && self.num_layers > 1 && self.dropout.is_some_and(|p| p > 0.0)
    }

    /// The name of input `i`: with one layer there is no weight of others.
    pub(super) fn input_name(&self, i: usize) -> &'static str {
        let first = ["x", "h", "c", "weight_l0"];
        let i = if self.cell.has_c() || i < 2 { i } else { i + 1 };
        match (i, self.num_layers) {
            (..4, _) => first[i],
            (4, 2..) => "weight",
            _ => "bias",
        }
    }

    /// Checks arguments and shapes.
    pub(super) fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let dropout = self.dropout.unwrap_or(0.0);
        if !(0.0..1.0).contains(&dropout) || dropout as f32 >= 1.0 {
            return Err(Error::arg("dropout", "a number of at least 0 and less than 1").actual(dropout));
        }
        let layers = usize::try_from(self.num_layers).ok().filter(|n| *n > 0);
        let layers = layers.ok_or_else(|| Error::arg("num_layers", "1 or more").actual(self.num_layers))?;
        let (seq, h) = (&x[0], &x[1]);
        if seq.ndim() != 3 {
            return Err(Error::shape("x", "3 axes").actual(seq).hint("shape (steps, batch, inputs)"));
        }
        if h.ndim() != 4 {
            return Err(Error::shape("h", "4 axes").actual(h).hint("shape (layers, directions, batch, hidden)"));
        }
        let (steps, batch, inputs, hidden) = (seq[0], seq[1], seq[2], h[3]);
        let directions = 1 + self.bidirectional as usize;
        const STATE: &str = "(layers, directions, batch, hidden)";
        check("h", h, [layers, directions, batch, hidden], STATE)?;
        if self.cell.has_c() {
            check("c", &x[2], [layers, directions, batch, hidden], STATE)?;
        }
        let has_bias = self.check_weights(x, [layers, directions, inputs, hidden])?;
        // All that is kept of all steps fits into memory's addresses.
        let largest = [layers, directions, steps, batch, hidden, 16].iter().map(|&n| n as f64).product::<f64>();
        if largest > isize::MAX as f64 / 8.0 {
            return Err(Error::shape("x", "sizes whose product fits into memory").actual(seq));
        }
        let call = kernel::Recurrent {
            cell: self.cell,
            steps,
            batch,
            inputs,
            hidden,
            layers,
            directions,
            has_bias,
            dropout,
            training: self.training,
            seed: RandomSeed::default(),
        };
        let mut shapes: crate::function::Shapes = smallvec![[steps, batch, directions * hidden].into(), h.clone()];
        shapes.extend(self.cell.has_c().then(|| h.clone()));
        Ok(Resolved::new(shapes, call))
    }

    /// Checks weights and biases; whether there are biases.
    fn check_weights(&self, x: &[Shape], [layers, directions, inputs, hidden]: [usize; 4]) -> Result<bool> {
        let first = 2 + self.cell.has_c() as usize;
        let is_plain = matches!(self.cell, Cell::Tanh | Cell::Relu);
        let with_gates = |before: &[usize], gates: usize, after: &[usize]| -> Shape {
            let gates = if is_plain { None } else { Some(gates) };
            before.iter().copied().chain(gates).chain(after.iter().copied()).collect()
        };
        let (gates, axes) = match is_plain {
            true => (1, ["(directions, hidden, inputs + hidden)", "(layers, directions, hidden)"]),
            false => (
                self.cell.gates(),
                ["(directions, gates, hidden, inputs + hidden)", "(layers, directions, biases, hidden)"],
            ),
        };
        check("weight_l0", &x[first], with_gates(&[directions], gates, &[hidden, inputs + hidden]), axes[0])?;
        if x.len() > first + 2 + (layers > 1) as usize {
            return Err(Error::arg("weight", "None with num_layers=1").actual("an array"));
        }
        let mut rest = x[first + 1..].iter();
        if layers > 1 {
            let wide = directions * hidden + hidden;
            let want = with_gates(&[layers - 1, directions], gates, &[hidden, wide]);
            let Some(weight) = rest.next() else {
                return Err(Error::shape("weight", format!("shape {want}"))
                    .actual("none")
                    .hint("the layers after the first one have their weights there"));
            };
            check("weight", weight, want, "of weight_l0 after one for the layers but the first")?;
        }
        let bias = rest.next();
        if let Some(bias) = bias {
            check("bias", bias, with_gates(&[layers, directions], self.cell.biases(), &[hidden]), axes[1])?;
        }
        Ok(bias.is_some())
    }
}

/// The gradients: those of a graph of all steps.
pub(super) fn rule(g: &Grad) -> Result<Vec<Option<Variable>>> {
    let c = g.call::<kernel::Recurrent>();
    if !c.training {
        return Err(Error::unsupported("there is no gradient with training=False").hint("pass training=True"));
    }
    // Inputs may depend on one another outside of the layer: here each is a variable of its own.
    let apart = |(x, want): (&Variable, &bool)| -> Result<Variable> {
        if *want { Ok(f::identity(x)?.with_need_grad(true)) } else { Ok(x.clone()) }
    };
    let x = g.x.iter().zip(&g.want).map(apart).collect::<Result<Vec<_>>>()?;
    let mask = c.drops().then(|| mask(c, &g.y[0])).transpose()?;
    let y = Unrolled { c, x: &x, mask }.outputs()?;
    let wanted: Vec<&Variable> = x.iter().zip(&g.want).filter(|(_, want)| **want).map(|(x, _)| x).collect();
    let outputs: Vec<&Variable> = y.iter().collect();
    let seeds: Vec<Option<&Variable>> = g.gy.iter().map(Some).collect();
    let mut found = graph::grad(&outputs, &wanted, &seeds)?.into_iter();
    let place = |(x, want): (&Variable, &bool)| match want.then(|| found.next().flatten()) {
        None => Ok(None),
        Some(Some(gradient)) => Ok(Some(gradient)),
        Some(None) => filled(0.0, &x.shape()).map(Some),
    };
    g.x.iter().zip(&g.want).map(place).collect()
}

fn sizes(s: &[usize]) -> Vec<i64> {
    s.iter().map(|&n| n as i64).collect()
}

fn filled(val: f64, shape: &[usize]) -> Result<Variable> {
    f::constant(f::Constant { val, shape: sizes(shape) })
}

/// What the numbers between layers were multiplied by when the layer last ran.
fn mask(c: &kernel::Recurrent, y: &Variable) -> Result<Variable> {
    let ones = filled(1.0, &[c.layers - 1, c.steps, c.batch, c.directions * c.hidden])?;
    call_one(DropoutAgain { p: c.dropout, draw: c.seed.last() }, &[&ones, y])
}

fn add(a: &Variable, b: &Variable) -> Result<Variable> {
    f::add2(a, b, f::Add2::default())
}

fn mul(a: &Variable, b: &Variable) -> Result<Variable> {
    f::mul2(a, b, f::Mul2::default())
}

fn shaped(x: &Variable, shape: &[usize]) -> Result<Variable> {
    f::reshape(x, f::Reshape { shape: sizes(shape), inplace: true })
}

/// Positions `first .. first + n` of an axis.
fn range(x: &Variable, axis: usize, first: usize, n: usize) -> Result<Variable> {
    f::slice(x, f::Slice::along(&x.shape(), axis, first, first + n))
}

/// Part number `i` along the first axes, which count as `n`, as a matrix of `columns`.
fn part(x: &Variable, n: usize, i: usize, shape: &[usize]) -> Result<Variable> {
    let size = shape.iter().product();
    shaped(&range(&shaped(x, &[n, size])?, 0, i, 1)?, shape)
}

/// A layer's steps as functions.
struct Unrolled<'a> {
    c: &'a kernel::Recurrent,
    x: &'a [Variable],
    mask: Option<Variable>,
}

impl Unrolled<'_> {
    fn outputs(&self) -> Result<Vec<Variable>> {
        let c = self.c;
        let wide = c.directions * c.hidden;
        let (mut x, mut hs, mut cs) = (self.x[0].clone(), vec![], vec![]);
        for layer in 0..c.layers {
            let mut out = vec![];
            for direction in 0..c.directions {
                let (y, h, state) = self.part(&x, layer, direction)?;
                out.push(y);
                hs.push(h);
                cs.extend(state);
            }
            let all: Vec<&Variable> = out.iter().collect();
            x = f::concatenate(&all, f::Concatenate { axis: Some(2) })?;
            if let (Some(mask), true) = (&self.mask, layer + 1 < c.layers) {
                x = mul(&x, &part(mask, c.layers - 1, layer, &[c.steps, c.batch, wide])?)?;
            }
        }
        let states = |list: &[Variable]| {
            let list: Vec<&Variable> = list.iter().collect();
            shaped(&f::stack(&list, f::Stack { axis: 0 })?, &[c.layers, c.directions, c.batch, c.hidden])
        };
        let mut outputs = vec![x, states(&hs)?];
        if c.cell.has_c() {
            outputs.push(states(&cs)?);
        }
        Ok(outputs)
    }

    /// A layer in one direction: its output, and the states after the last step.
    fn part(&self, x: &Variable, layer: usize, direction: usize) -> Result<(Variable, Variable, Option<Variable>)> {
        let (c, hidden) = (self.c, self.c.hidden);
        let first = 2 + c.cell.has_c() as usize;
        let (number, count) = (layer * c.directions + direction, c.layers * c.directions);
        let rows = c.cell.gates() * hidden;
        let width = if layer == 0 { c.inputs } else { c.directions * hidden };
        let (weight, n, i) = match layer {
            0 => (&self.x[first], c.directions, direction),
            _ => (&self.x[first + 1], (c.layers - 1) * c.directions, number - c.directions),
        };
        let weight = part(weight, n, i, &[rows, width + hidden])?;
        let columns = |first: usize, n: usize| {
            f::transpose(&range(&weight, 1, first, n)?, f::Transpose { axes: vec![1i64, 0].into() })
        };
        let (of_x, of_h) = (columns(0, width)?, columns(width, hidden)?);
        let bias = c.has_bias.then(|| part(&self.x[self.x.len() - 1], count, number, &[c.cell.biases() * hidden]));
        let bias = bias.transpose()?;
        let of_sums = bias.as_ref().map(|b| range(b, 0, 0, rows)).transpose()?;
        let of_state = bias.as_ref().filter(|_| c.cell == Cell::Gru).map(|b| range(b, 0, rows, hidden)).transpose()?;
        let state = |i: usize| part(&self.x[i], count, number, &[c.batch, hidden]);
        let (mut h, mut own) = (state(1)?, if c.cell.has_c() { Some(state(2)?) } else { None });
        if c.steps == 0 {
            return Ok((filled(0.0, &[0, c.batch, hidden])?, h, own));
        }
        let sums = f::affine(x, &of_x, of_sums.as_ref(), f::Affine { base_axis: 2 })?;
        let mut steps = f::split(&sums, f::Split { axis: 0 })?;
        let order: Vec<usize> = if direction == 0 { (0..c.steps).collect() } else { (0..c.steps).rev().collect() };
        for time in order {
            let products = f::affine(&h, &of_h, None, f::Affine { base_axis: 1 })?;
            (h, own) = self.step(&steps[time], &products, h, own, of_state.as_ref())?;
            steps[time] = h.clone();
        }
        let outs: Vec<&Variable> = steps.iter().collect();
        Ok((f::stack(&outs, f::Stack { axis: 0 })?, h, own))
    }

    fn step(
        &self,
        sums: &Variable,
        products: &Variable,
        h: Variable,
        own: Option<Variable>,
        of_state: Option<&Variable>,
    ) -> Result<(Variable, Option<Variable>)> {
        let hidden = self.c.hidden;
        let gate = |x: &Variable, i: usize| range(x, 1, i * hidden, hidden);
        match (self.c.cell, own) {
            (Cell::Relu, _) => Ok((f::relu(&add(sums, products)?, f::ReLU::default())?, None)),
            (Cell::Gru, _) => {
                let open = |i: usize| f::sigmoid(&add(&gate(sums, i)?, &gate(products, i)?)?);
                let (r, z, mut state) = (open(0)?, open(1)?, gate(products, 2)?);
                if let Some(b) = of_state {
                    state = add(&state, &shaped(b, &[1, hidden])?)?;
                }
                let n = f::tanh(&add(&gate(sums, 2)?, &mul(&r, &state)?)?)?;
                // n + z (h - n)
                let move_on = mul(&z, &f::sub2(&h, &n, f::Sub2::default())?)?;
                Ok((add(&n, &move_on)?, None))
            }
            (Cell::Lstm, Some(own)) => {
                let all = add(sums, products)?;
                let open = |i: usize| f::sigmoid(&gate(&all, i)?);
                let n = f::tanh(&gate(&all, 2)?)?;
                let own = add(&mul(&open(1)?, &own)?, &mul(&open(0)?, &n)?)?;
                Ok((mul(&open(3)?, &f::tanh(&own)?)?, Some(own)))
            }
            _ => Ok((f::tanh(&add(sums, products)?)?, None)),
        }
    }
}
