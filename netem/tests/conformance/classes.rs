//! Tests of a topology's link classes, which have their own delays, losses and rates.

use volary_actors::base::{Class, Endpoint, Span, Time};
use volary_netem::{Cause, Fabric, Faults, TopologyFile, Verdict};

use crate::{deliver, ms, network};

const TWO_RACKS: &str = "
    title = 't'
    placement = 'spread'
    [shape.leaf-spine]
    racks = 2
    nodes_per_rack = 2
    [link.rack]
    one_way = '1ms'
    [link.fabric]
    one_way = '5ms'
    loss = 1
    rate = '8 Mbit/s'
";

#[test]
fn each_link_class_has_its_own_delay_loss_and_rate() {
    let topology = toml::from_str::<TopologyFile>(TWO_RACKS).unwrap().resolve(1).unwrap();
    // The endpoints are one coordinator on node 0, then the four nodes.
    let mut places = vec![topology.seat(0, 1)];
    places.extend(topology.nodes());
    let network = network("duplicate = 1\nrto = '40ms'\npeer_timeout = '100ms'");
    let mut links = Fabric::new(&network, topology.links(places), 5, 1, Faults::default(), 1).unwrap();
    let mut send = |src, dst, class| links.route(Time::ZERO, Endpoint(src), Endpoint(dst), class, 1000);
    assert_eq!(send(0, 1, Class::Datagram), deliver(Span::ZERO, 0), "links within a machine have no delay");
    assert_eq!(send(0, 2, Class::Datagram), Verdict::Twice { after: ms(1), again: ms(1) });
    assert_eq!(send(0, 2, Class::Stream), deliver(ms(1), 0));
    assert_eq!(send(0, 4, Class::Stream), Verdict::Unreachable { after: ms(100), cause: Cause::Loss });
    assert_eq!(send(0, 4, Class::Datagram), Verdict::Drop(Cause::Loss), "a lost datagram has no duplicate");
}
