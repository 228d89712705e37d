//! Test that routing allocates nothing per message; only the first use of a link may allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use volary_actors::base::{Class, Endpoint, Time};
use volary_netem::{Fabric, Faults, Groups, Links, Network};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller upholds the same contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the same contract.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

#[test]
fn routing_over_used_links_allocates_nothing() {
    let text = "
        one_way = { hyperexponential = { means = ['1ms', '9ms'], weights = [1.0, 2.0] } }
        correlation = 0.5
        loss = { gilbert-elliott = { p = 0.1, r = 0.3 } }
        duplicate = 0.1
        reorder = 0.1
        rate = '1 Gbit/s'
        buffer = '10ms'
        [[fault]]
        partition = { a = ['node:0'], at = '1s', for = '5s' }
        [[fault]]
        crash = { who = ['node:1'], at = '3s', for = '1s' }
    ";
    let network: Network = toml::from_str(text).unwrap();
    let mut groups = Groups::new(40);
    groups.number("node", Endpoint(2), 38);
    let faults = Faults::resolve(&network.fault, &groups, 40).unwrap();
    let mut fabric = Fabric::new(&network, Links::uniform(), 40, 2, faults, 1).unwrap();
    let round = |fabric: &mut Fabric, k: u64| {
        for src in 0..40 {
            for dst in (0..40).filter(|&dst| dst != src) {
                let class = if (src + dst) % 2 == 0 { Class::Stream } else { Class::Datagram };
                fabric.route(Time(k * 10_000_000), Endpoint(src), Endpoint(dst), class, 100);
            }
        }
    };
    round(&mut fabric, 0);
    let before = ALLOCATIONS.with(Cell::get);
    assert!(before > 0, "the counter must count allocations");
    (1..100).for_each(|k| round(&mut fabric, k * 10));
    assert_eq!(ALLOCATIONS.with(Cell::get), before);
}
