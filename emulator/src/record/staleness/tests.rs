use super::*;

#[test]
fn long_runs_are_looked_at_less_often() {
    let layout = Layout::new(20, 0, vec![1; 1000]);
    let mut books = Books::new(&layout, 1, Time::ZERO);
    books.made(Time::ZERO, Some(0), 8, 5_000_000_000);
    books.look(Time(3_000_000_000_000), Span::from_secs(1));
    let looks = books.rows.chunk_by(|a, b| a.time == b.time);
    let times: Vec<u32> = looks.map(|look| look[0].time.round() as u32).collect();
    assert!((512..=1024).contains(&times.len()), "{}", times.len());
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == books.stride));
    assert_eq!((books.stride, times.last()), (4, Some(&3000)));
    assert_eq!(books.views.len(), 10);
    let last = books.rows.last().unwrap();
    assert_eq!((last.in_flight, last.age_max.round()), (1, 3000.0), "it is never taken in");
    // Weighted by how long each look stands for, the mean age of that node is half the time.
    let mean = books.ages.mean() * 250.0;
    assert!((mean / (0.9 * 1500.0) - 1.0).abs() < 0.01, "{mean}");
}
