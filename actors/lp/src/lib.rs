//! A solver for plans of jobs over slots of time and sets of nodes: linear relaxation and rounding. It is pure (no
//! clock, no I/O, no randomness from outside) and uses only + − × ÷ on `f64`, so its results have the same bits on
//! every machine. It has no dependencies.
//!
//! # The problem
//!
//! This is the scheduling problem of 3Sigma (Park et al., EuroSys 2018; Park's thesis, section 4.3.3). Each pending job
//! j with k_j tasks has options o: a block (the nodes that it may use, which determine how long it takes) and a slot s
//! to start in, worth U_o. An option's tasks may be split over the sets p of its block; x_{o,p} is the share on set p.
//! A task that has run for i slots holds rc_o(i) nodes in expectation. Preempting a share y_r of a running job r costs
//! P_r y_r, and frees k_{r,p} rc_r(t) y_r nodes of each set p:
//!
//! ```text
//! maximize    Σ_o U_o Σ_p x_{o,p} − Σ_r P_r y_r
//! subject to  Σ_{o of j} Σ_p x_{o,p} ≤ 1                                            for each job j (its group row)
//!             y_r ≤ 1                                                               for each running job r
//!             Σ_o k_o rc_o(t − s_o) x_{o,p} − Σ_r k_{r,p} rc_r(t) y_r ≤ C_p(t)      for each set p and slot t
//!             x, y ≥ 0
//! ```
//!
//! In a [`Plan`], y_r, Σ_p x_{o,p} and k_j x_{o,p} are also integers. The relaxation drops this condition. All C_p(t) ≥
//! 0, so the empty plan is feasible.
//!
//! # The method
//!
//! *Generalised upper bounding* (Dantzig and Van Slyke 1967). There are hundreds of group rows and few capacity rows,
//! and a group row is almost an upper bound, so group rows are kept implicit. Every basis has at least one variable of
//! each group (its columns and the slack of its row). One of them is the group's *key*. The group row determines the
//! value of the key: one minus the values of the others. Substituting the keys leaves a *working basis* of one column
//! for each capacity row: a_j − a_key(j) for the other basic columns, and unit columns for slacks of capacity rows.
//! Each pivot updates the dense inverse of the working basis; every hundredth pivot computes it from the columns. If a
//! key is to leave and its group has other basic variables, one of those becomes the key first, which changes one row
//! of the inverse to minus the sum of the group's rows. If the group has none, the entering variable belongs to it and
//! becomes the key, and the working basis does not change.
//!
//! *Pricing.* Groups are priced in turn; the column of largest reduced cost of each becomes a candidate, and
//! candidates serve for several pivots. *Ratio test.* Two passes (Harris 1973), the second of which takes the largest
//! pivot element. Right-hand sides are perturbed by about 1e-6 nodes, differently for each row, so that ties are
//! rare.
//!
//! *Warm start.* A [`Basis`] names its variables. In the next problem the variables that still exist form a basis, in
//! which slacks replace dependent variables. If its solution is infeasible, a first phase minimizes the sum of the
//! infeasibilities. If this phase does not end, the method starts again from the empty plan.
//!
//! *Bounds.* Any y ≥ 0 proves an upper bound on the optimum, Σ_t y_t C_t + Σ_g max(0, max_{j ∈ g} (c_j − y·a_j)). So
//! the duals of an answer prove its bound wherever the solve stopped, even if the method had an error.
//!
//! *Rounding* takes options by their shares and prices, and improves the plan by ruin and recreate.
//!
//! # Termination
//!
//! In exact arithmetic, with tolerances of zero, the second phase ends for any problem, perturbed or not. A pivot
//! with a positive step raises the objective, so a basis from before it never returns. After 50 pivots without a
//! positive step, Bland's rule applies until there is one: the variable of lowest number with a positive reduced cost
//! enters, and of those that attain the smallest ratio the one of lowest number leaves. Under this rule no basis
//! returns (Bland 1977). For suppose that one does, and let q be the highest variable that enters and leaves in
//! between. Every variable that does so stays at zero. When q enters, say at basis B with reduced costs d, d_q > 0
//! and d_j ≤ 0 for all lower j. When q leaves, say as s enters at B', let v be the direction: v_s = 1, v_i = −w_i for
//! basic i, and 0 elsewhere. The objective's rate along v does not depend on the basis it is computed from: at B' it
//! is the reduced cost of s, which is positive; at B it is Σ_j d_j v_j. So d_j v_j > 0 for some j. Then d_j ≠ 0, so j
//! is not basic in B, and v_j ≠ 0, so j is basic in B' or is s: j enters and leaves in between, and j ≤ q. It is not
//! q: d_q > 0, but v_q = −w_q < 0, since q leaves. It is not s: s < q gives d_s ≤ 0 and v_s = 1. So j < q is basic in
//! B', d_j < 0 (it is not positive, as j < q) and v_j < 0, hence w_j > 0 with j at zero: j attained the smallest
//! ratio and, being lower than q, would have left in its place. So each stretch of pivots without a positive step is
//! finite, and there are finitely many bases. The group rows make no difference: keys and working basis together are a
//! basis of the whole program, and exchanging a key changes how the basis is stored, not which basis it is.
//!
//! In floating point the limit on pivots in [`Work`] ends the method even if rounding errors break this argument.
//!
//! # Example
//!
//! ```
//! use volary_lp::{Block, Job, Problem, Start, Work, relax, round};
//!
//! // Two jobs of one task compete for one node over four slots; each takes two slots and is worth less the later it
//! // starts.
//! let block = |utility: f64| Block {
//!     name: 0,
//!     sets: vec![0],
//!     demand: vec![1.0, 1.0],
//!     starts: (0..3).map(|slot| Start { slot, utility: utility * (1.0 - 0.2 * f64::from(slot)) }).collect(),
//! };
//! let job = |name, utility| Job { name, tasks: 1, blocks: vec![block(utility)] };
//! let problem = Problem::new(4, vec![1.0; 4], vec![job(1, 0.5), job(2, 1.0)], Vec::new())?;
//!
//! let relaxed = relax(&problem, None, Work::default());
//! let plan = round(&problem, &relaxed, Work::default());
//! assert_eq!(plan.choices[0].slot, 2); // the job that is worth less waits
//! assert_eq!(plan.choices[1].slot, 0);
//! assert!(plan.value <= relaxed.bound + 1e-9);
//! # Ok::<(), volary_lp::Error>(())
//! ```

#![forbid(unsafe_code)]

mod columns;
mod problem;
mod round;
mod simplex;

pub use columns::{Basis, Block, Job, Running, Start, Variable};
pub use problem::{Choice, Error, Plan, Problem};
pub use round::round;
pub use simplex::{Relaxed, Work, relax};
