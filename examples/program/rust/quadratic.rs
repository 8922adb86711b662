//! Fits a plane to points: 100 rows of 4 numbers.
//!
//!     rustc --edition 2021 -O quadratic.rs && disttf launch --program -- ./quadratic
mod disttf;
use disttf::{Request, Run, Variable};

const COUNT: usize = 100;

fn error_of(run: &Run, x: &[f32; 4], y: f32) -> f32 {
    let products = run.parameters(0).iter().zip(x).map(|(w, value)| w * value);
    products.fold(run.parameters(1)[0] - y, |sum, each| sum + each)
}

fn main() {
    let mut state = 1u32;
    let mut number = || {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let x: Vec<[f32; 4]> = (0..COUNT).map(|_| [number(), number(), number(), number()]).collect();
    let y: Vec<f32> = x.iter().map(|x| x[0] + 2.0 * x[1] + 3.0 * x[2] + 4.0 * x[3]).collect();
    let variables = [Variable { name: "w", shape: &[4], decays: true }, Variable { name: "b", shape: &[], decays: false }];
    let mut run = Run::join("quadratic.rs 1.0", COUNT as u32, true, &variables);
    loop {
        match run.next() {
            Request::Initial => {
                run.gradient(0).fill(0.0);
                run.gradient(1).fill(0.0);
                run.answer();
            }
            Request::Compute { rows } => {
                run.gradient(0).fill(0.0);
                run.gradient(1).fill(0.0);
                let mut loss = 0.0;
                for row in rows.iter().map(|row| *row as usize) {
                    let error = error_of(&run, &x[row], y[row]);
                    let share = 2.0 * error / rows.len() as f32;
                    loss += f64::from(error * error) / rows.len() as f64;
                    for (gradient, value) in run.gradient(0).iter_mut().zip(&x[row]) {
                        *gradient += share * value;
                    }
                    run.gradient(1)[0] += share;
                }
                run.push(loss);
            }
            Request::Evaluate => {
                let loss: f64 = (0..COUNT).map(|row| f64::from(error_of(&run, &x[row], y[row]).powi(2))).sum();
                run.evaluation(&format!(r#"{{"loss": {}}}"#, loss / COUNT as f64));
            }
            Request::End => break,
        }
    }
    println!("w {:.3?}", run.parameters(0));
}
