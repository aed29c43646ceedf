//! Runs a network of a `.nnp` file, as NNabla or nnrs saves it, with no Python:
//!
//! ```text
//! cargo run --release --example serve_nnp -- model.nnp [network] [batch size]
//! ```
//!
//! Without a file it makes a small one first. Inputs are filled with ones here; a server would write its requests there.

use nnrs::nnp::{NetworkToSave, Nnp};
use nnrs::{Error, Result, Variable, functions as f, parameter, parametric as pf};
use std::path::{Path, PathBuf};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let given = arguments.next().map(PathBuf::from);
    let path = given.clone().unwrap_or_else(|| std::env::temp_dir().join(format!("serve-{}.nnp", std::process::id())));
    if given.is_none() {
        make(&path)?;
    }
    let nnp = Nnp::open(&path)?;
    let names = nnp.network_names();
    println!("networks: {}", names.join(", "));
    let Some(name) = arguments.next().or_else(|| names.first().map(|n| n.to_string())) else {
        return Err(Error::arg("model.nnp", "a file with a network").actual(format!("{}", path.display())));
    };
    let is_wrong = |text: &str| Error::arg("batch size", "a number").actual(format!("'{text}'"));
    let batch_size = arguments.next().map(|n| n.parse().map_err(|_| is_wrong(&n))).transpose()?;
    let outputs = serve(&nnp, &name, batch_size)?;
    outputs.iter().for_each(|(name, y)| println!("{name}: {} {:?}", y.shape(), first(y)));
    if given.is_none() {
        std::fs::remove_file(&path)?;
    }
    Ok(())
}

/// Runs a network over ones; its outputs by name.
fn serve(nnp: &Nnp, name: &str, batch_size: Option<i64>) -> Result<Vec<(String, Variable)>> {
    let network = nnp.network(name, batch_size)?;
    for (_, x) in &network.inputs {
        x.data()?.fill(1.0)?;
    }
    let roots: Vec<&Variable> = network.outputs.iter().map(|(_, y)| y).collect();
    nnrs::forward_all(&roots, nnrs::ForwardOptions::default())?;
    Ok(network.outputs)
}

fn first(y: &Variable) -> Vec<f32> {
    y.to_vec::<f32>().unwrap_or_default().into_iter().take(4).collect()
}

/// A file for want of one: a layer over four numbers.
fn make(path: &Path) -> Result<()> {
    let x = Variable::new([8, 4]);
    let y = f::tanh(&pf::affine("last", &x, 2, Default::default())?)?;
    let names = [("x".to_string(), x), ("y".to_string(), y.clone())];
    let parameters = parameter::get_all_parameters();
    let network = NetworkToSave {
        name: "main",
        batch_size: 8,
        outputs: &[y],
        names: &names,
        parameters: &parameters,
        variable_batch_size: true,
    };
    Nnp::save(path, &[network])
}

#[test]
fn a_file_is_made_and_served() -> Result<()> {
    let path = std::env::temp_dir().join(format!("serve-test-{}.nnp", std::process::id()));
    make(&path)?;
    let outputs = serve(&Nnp::open(&path)?, "main", Some(3))?;
    assert_eq!((outputs[0].0.as_str(), outputs[0].1.shape()), ("y", [3, 2].into()));
    assert!(serve(&Nnp::open(&path)?, "other", None).is_err());
    std::fs::remove_file(&path)?;
    Ok(())
}

#[test]
fn a_file_of_nnabla_is_served() -> Result<()> {
    let nnp = Nnp::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/nnp/composed.nntxt"))?;
    for name in nnp.network_names() {
        assert_eq!(serve(&nnp, name, None)?[0].0, "y");
    }
    assert_eq!(serve(&nnp, "ij,jk->ik", None)?[0].1.to_vec::<f32>()?, [2.0; 6]);
    assert_eq!(serve(&nnp, "convolution", None)?[0].1.to_vec::<f32>()?[0], 8.0);
    Ok(())
}
