//! Tests of histograms against samples of known distributions, of distributions against closed forms, and of experts on
//! scripted histories.

use proptest::prelude::*;

use super::*;
use crate::base::{Address, Feature, Purpose};

fn near(got: f64, want: f64, tolerance: f64) {
    assert!((got - want).abs() <= tolerance, "{got}, expected {want}");
}

fn histogram(values: impl IntoIterator<Item = f64>) -> Histogram {
    let mut histogram = Histogram::default();
    values.into_iter().for_each(|value| histogram.add(value));
    histogram
}

/// Values of a distribution whose inverse distribution function is `inverse`.
fn sample(seed: u64, count: u64, inverse: impl Fn(f64) -> f64) -> Vec<f64> {
    (0..count).map(|k| inverse(Address::new(seed, Purpose::Tool).at(k).unit())).collect()
}

#[test]
fn a_histogram_of_fewer_values_than_bins_is_exact() {
    let h = histogram([5.0, 1.0, 3.0, 3.0]);
    assert_eq!((h.weight(), h.mean(), h.range()), (4.0, Some(3.0), Some((1.0, 5.0))));
    for (x, share) in [(0.9, 0.0), (1.0, 0.25), (2.9, 0.25), (3.0, 0.75), (5.0, 1.0), (9.0, 1.0)] {
        assert_eq!(h.cdf(x), share, "{x}");
    }
    let all = histogram((0..BINS).map(|k| k as f64));
    assert!(all.bins().iter().all(|bin| bin.weight == 1.0) && all.bins().len() == BINS);
    assert_eq!(all.cdf(19.5), 0.25);
    assert_eq!((Histogram::default().mean(), Histogram::default().cdf(1.0)), (None, 0.0));
}

/// A function of a number.
type Function = fn(f64) -> f64;

/// Six distributions with light tails, from narrow to bimodal. Each has a name, its inverse distribution function and
/// its distribution function.
fn distributions() -> [(&'static str, Function, Function); 6] {
    [
        ("uniform", |u| 10.0 * u, |x| (x / 10.0).clamp(0.0, 1.0)),
        ("exponential", |u| -(1.0 - u).ln(), |x| 1.0 - (-x).exp()),
        ("triangular", |u| u.sqrt(), |x| x.clamp(0.0, 1.0).powi(2)),
        ("logistic", |u| 20.0 + (u / (1.0 - u)).max(1e-12).ln(), |x| 1.0 / (1.0 + (20.0 - x).exp())),
        ("weibull", |u| (-(1.0 - u).ln()).powf(0.5), |x| 1.0 - (-x * x).exp()),
        (
            "bimodal",
            |u| if u < 0.5 { 2.0 * u } else { 100.0 + 2.0 * (u - 0.5) },
            |x| (x.clamp(0.0, 1.0) + (x - 100.0).clamp(0.0, 1.0)) / 2.0,
        ),
    ]
}

#[test]
fn distribution_functions_are_within_two_bins_of_the_truth() {
    for (name, inverse, cdf) in distributions() {
        for seed in 1..=5 {
            let values = sample(seed, 20_000, inverse);
            let h = histogram(values.iter().copied());
            assert!(h.bins().len() <= BINS);
            for &value in values.iter().step_by(37) {
                let error = (h.cdf(value) - cdf(value)).abs();
                assert!(error < 2.0 / BINS as f64, "{name}, seed {seed}: {error} at {value}");
            }
        }
    }
}

#[test]
fn means_of_a_million_heavy_tailed_values_are_exact() {
    // A Pareto distribution of shape 1.2, where the largest values contribute most of the sum.
    let values = sample(3, 1_000_000, |u| (1.0 - u).powf(-1.0 / 1.2));
    let h = histogram(values.iter().copied());
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    near(h.mean().unwrap() / mean, 1.0, 1e-12);
    assert_eq!(h.weight(), 1e6);
    let most = values.iter().copied().fold(0.0, f64::max);
    assert_eq!(h.range().unwrap().1, most);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merged_histograms_equal_streamed_ones(
        few in prop::collection::vec(0u32..30, 1..40),
        more in prop::collection::vec(0u32..30, 1..40),
        many in prop::collection::vec(0f64..1000.0, 300..1500),
        split in 1usize..299,
    ) {
        // Below the limit of bins a merge is exact.
        let [a, b] = [&few, &more].map(|part| histogram(part.iter().map(|&x| f64::from(x))));
        let mut both = a;
        both.merge(&b);
        prop_assert_eq!(both, histogram(few.iter().chain(&more).map(|&x| f64::from(x))));
        // Above the limit count and mean are the same, and the distribution nearly so.
        let mut merged = histogram(many[..split].iter().copied());
        merged.merge(&histogram(many[split..].iter().copied()));
        let stream = histogram(many.iter().copied());
        prop_assert_eq!(merged.weight(), stream.weight());
        prop_assert_eq!(merged.range(), stream.range());
        prop_assert!((merged.mean().unwrap() / stream.mean().unwrap() - 1.0).abs() < 1e-12);
        for &x in &many {
            prop_assert!((merged.cdf(x) - stream.cdf(x)).abs() < 4.0 / BINS as f64, "at {}", x);
        }
    }

    #[test]
    fn distribution_functions_rise_from_zero_to_one(values in prop::collection::vec(0f64..100.0, 1..300)) {
        let h = histogram(values.iter().copied());
        let at: Vec<f64> = (-1..=101).map(|x| h.cdf(f64::from(x))).collect();
        prop_assert!(at.windows(2).all(|pair| pair[0] <= pair[1] + 1e-12), "{:?}", at);
        prop_assert_eq!((at[0], at[102]), (0.0, 1.0));
    }
}

/// U(0, 10) after 5 has 1 − CDF' = 1, 0.5, 0 at 5, 7.5, 10.
#[test]
fn elapsed_time_conditions_a_distribution() {
    let after = Distribution::uniform(0.0, 10.0).given(5.0).unwrap();
    for (x, rest) in [(5.0, 1.0), (7.5, 0.5), (10.0, 0.0)] {
        near(1.0 - after.cdf(x), rest, 1e-12);
    }
    near(after.mean(), 7.5, 1e-12);
    assert_eq!(Distribution::uniform(0.0, 10.0).given(10.0), None, "the job ran longer than any value");
    // Points at 1, 2 and 6 have probabilities 1/2, 1/4 and 1/4. After 1 the first is impossible.
    let points = Distribution::of(&histogram([1.0, 1.0, 2.0, 6.0])).unwrap();
    let after = points.given(1.0).unwrap();
    assert_eq!((after.cdf(1.5), after.cdf(2.0), after.mean(), after.max()), (0.0, 0.5, 4.0, 6.0));
    assert_eq!(points.given(6.0), None);
}

/// The expected utilities of the thesis, Fig. 4.5, have a utility of 1 until the deadline of 15.
#[test]
fn expected_utilities_match_the_example_of_the_thesis() {
    let starts = (0..8).map(|slot| 2.5 * f64::from(slot));
    let utility = |distribution: &Distribution| -> Vec<f64> {
        let met = |start: f64| move |t: f64| f64::from(u8::from(start + t <= 15.0));
        starts.clone().map(|start| distribution.expect(&[15.0 - start], met(start))).collect()
    };
    let expected = [1.0, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0];
    for (got, want) in utility(&Distribution::uniform(0.0, 10.0)).into_iter().zip(expected) {
        near(got, want, 1e-12);
    }
    let expected = [1.0, 1.0, 1.0, 1.0, 0.5, 0.0, 0.0, 0.0];
    for (got, want) in utility(&Distribution::uniform(2.5, 7.5)).into_iter().zip(expected) {
        near(got, want, 1e-12);
    }
    near(Distribution::uniform(0.0, 6.0).expect(&[], |t| t * t), 12.0, 1e-12);
    near(Distribution::point(3.0).expect(&[], |t| t * t), 9.0, 1e-12);
}

#[test]
fn distributions_add_and_scale() {
    let die = Distribution::of(&histogram((1..=6).map(f64::from))).unwrap();
    let two = die.plus(&die);
    near(two.mean(), 7.0, 1e-12);
    near(two.cdf(4.0), 6.0 / 36.0, 1e-12);
    near(two.cdf(11.9), 35.0 / 36.0, 1e-12);
    // Two jobs of U(0, 10) take longer than 15 with a probability of 1/8.
    let uniform = Distribution::uniform(0.0, 10.0);
    near(1.0 - uniform.plus(&uniform).cdf(15.0), 0.125, 2.0 / BINS as f64);
    let preferred = uniform.scaled(1.5);
    assert_eq!((preferred.mean(), preferred.max(), preferred.cdf(7.5)), (7.5, 15.0, 0.5));
    near(preferred.pdf(3.0), 1.0 / 15.0, 1e-15);
    assert_eq!(
        (preferred.pdf(15.0), Distribution::point(2.0).pdf(2.0), Distribution::point(2.0).cdf(2.0)),
        (0.0, 0.0, 1.0)
    );
}

#[test]
fn estimators_follow_their_definitions() {
    let mut history = History::new(false);
    assert_eq!(history.estimates(), None);
    history.learn(10.0, None);
    assert_eq!(history.estimates(), Some([10.0; 4]));
    history.learn(20.0, None);
    // The rolling mean is 0.6 of the newest value and 0.4 of the mean before it.
    assert_eq!(history.estimates(), Some([15.0, 15.0, 16.0, 15.0]));
    (0..30).for_each(|k| history.learn(f64::from(k), None));
    let [mean, median, rolling, recent] = history.estimates().unwrap();
    near(mean, (30.0 + 435.0) / 32.0, 1e-12);
    assert_eq!((median, recent), (17.0, 24.5), "the median is of 5 to 29, the mean of 20 to 29");
    // With a constant step of one the rolling mean lags by 0.4 / 0.6.
    near(rolling, 29.0 - 2.0 / 3.0, 1e-9);
    assert_eq!(history.best(), (Estimator::Median, f64::INFINITY), "no estimator was tried");
}

#[test]
fn experts_are_scored_by_their_normalised_errors() {
    let mut history = History::new(false);
    for (estimates, run) in [([9.0, 10.0, 14.0, 0.0], 10.0), ([30.0, 25.0, 20.0, 0.0], 30.0)] {
        history.learn(run, Some(&estimates));
    }
    // The errors are 1, 5, 14 and 40 on 40 s of work.
    assert_eq!(history.best(), (Estimator::Mean, 1.0 / 40.0));
    let mut instant = History::new(false);
    instant.learn(0.0, Some(&[1.0, 0.0, 1.0, 1.0]));
    assert_eq!(instant.best(), (Estimator::Median, 0.0));
    instant.learn(0.0, Some(&[1.0, 1.0, 1.0, 1.0]));
    assert_eq!(instant.best(), (Estimator::Median, f64::INFINITY));
}

/// Feature values of a job of a script, given by user and name.
fn values((user, name): (u32, u32)) -> impl Fn(Feature) -> u32 {
    move |feature| match feature.name() {
        "user" => user,
        "name" => name,
        _ => 0,
    }
}

/// Runs jobs one after the other and returns the predictions.
fn script(predictor: &mut Predictor, jobs: &[((u32, u32), f64)]) -> Vec<Prediction> {
    let step = |&(job, run): &((u32, u32), f64)| {
        let prediction = predictor.predict(values(job));
        predictor.learn(values(job), &prediction, run);
        prediction
    };
    jobs.iter().map(step).collect()
}

#[test]
fn the_feature_with_the_smallest_error_is_used() {
    let [user, name] = [Feature::User, Feature::Name].map(Combination::single);
    let mut predictor = Predictor::new(PredictorKind::ThreeSigma, &[user, name]);
    // One user runs two programs of 10 s and 100 s. The name distinguishes them, the user does not.
    let jobs: Vec<_> = (0..20).map(|k| ((1, 1 + k % 2), if k % 2 == 0 { 10.0 } else { 100.0 })).collect();
    let predictions = script(&mut predictor, &jobs);
    assert_eq!((predictions[0].point, predictions[0].combination), (None, None));
    assert_eq!(predictions[1].point, Some(10.0), "the estimate is that of the user's only job");
    for (prediction, (_, run)) in predictions.iter().zip(&jobs).skip(5) {
        assert_eq!((prediction.point, prediction.combination), (Some(*run), Some(1)));
    }
    assert_eq!(predictor.values(), 3);
    let known = predictor.predict(values((1, 1)));
    assert_eq!(predictor.histogram(&known).unwrap().bins(), [Bin { centre: 10.0, weight: 10.0 }]);
    // No job with one of these values has ended, so the history of all jobs is used.
    let stranger = predictor.predict(values((7, 0)));
    assert_eq!((stranger.combination, predictor.histogram(&stranger).unwrap().weight()), (None, 20.0));
    assert!(stranger.point.is_some());
}

#[test]
fn jobs_with_unknown_values_of_a_feature_are_not_similar() {
    let name = Combination::single(Feature::Name);
    let mut predictor = Predictor::new(PredictorKind::JvuPredict, &[name]);
    let predictions = script(&mut predictor, &[((1, 0), 5.0), ((1, 0), 7.0)]);
    assert_eq!((predictions[1].combination, predictions[1].point), (None, Some(5.0)));
    assert_eq!((predictor.values(), predictor.histogram(&predictions[1])), (0, None));
}

#[test]
fn errors_use_the_estimates_made_at_submission() {
    let user = Combination::single(Feature::User);
    let mut predictor = Predictor::new(PredictorKind::JvuPredict, &[user]);
    script(&mut predictor, &[((1, 0), 10.0)]);
    // Two jobs are submitted together. The run time of the first, 30 s, was unknown to the second's estimate.
    let [first, second] = [(); 2].map(|()| predictor.predict(values((1, 0))));
    predictor.learn(values((1, 0)), &first, 30.0);
    predictor.learn(values((1, 0)), &second, 30.0);
    // Both jobs had an estimate of 10 s, so every estimator has 40 s of error on 60 s of work.
    let next = predictor.predict(values((1, 0)));
    assert_eq!((next.combination, next.estimator), (Some(0), Estimator::Mean));
    near(next.point.unwrap(), 70.0 / 3.0, 1e-12);
}

#[test]
fn combinations_are_all_single_features_and_then_all_pairs() {
    let all = Combination::singles_and_pairs(&[Feature::User, Feature::Name, Feature::Class]);
    let names: Vec<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["user", "name", "class", "user+name", "user+class", "name+class"]);
    for feature in Feature::ALL {
        assert_eq!(feature.name().parse(), Ok(feature));
        assert_eq!(Feature::ALL[feature.index()], feature);
    }
    assert!(PredictorKind::ALL.iter().all(|kind| kind.name().parse() == Ok(*kind)));
    assert_eq!("users".parse::<Feature>(), Err(()));
}

/// Two pairs of values differ if the same numbers are in another order.
#[test]
fn pairs_of_values_in_different_order_are_distinct() {
    let both = Combination::pair(Feature::User, Feature::Name);
    let mut predictor = Predictor::new(PredictorKind::JvuPredict, &[both]);
    script(&mut predictor, &[((1, 2), 5.0), ((2, 1), 50.0), ((1, 2), 5.0), ((2, 1), 50.0)]);
    assert_eq!(predictor.predict(values((1, 2))).point, Some(5.0));
    assert_eq!(predictor.predict(values((2, 1))).point, Some(50.0));
    assert_eq!((predictor.predict(values((1, 1))).combination, predictor.values()), (None, 2));
}
