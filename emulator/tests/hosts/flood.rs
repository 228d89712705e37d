//! Runs during a flood of handshakes from forged addresses, none of which is completed.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, finish};
use crate::raw_quic::RawClient;

/// A flood of first packets of handshakes, each from another loopback address, which lasts until this value is dropped.
struct Flood {
    ended: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    /// Sends this many packets a second to an address. `packets` are sent in turn.
    fn begin(packets: Vec<Vec<u8>>, to: SocketAddr, per_second: u64) -> Self {
        let (ended, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (until, count) = (Arc::clone(&ended), Arc::clone(&sent));
        let thread = thread::spawn(move || {
            let began = Instant::now();
            for (i, packet) in (0_u32..).zip(packets.iter().cycle()) {
                while began.elapsed().as_micros() < u128::from(i) * 1_000_000 / u128::from(per_second) {
                    thread::sleep(Duration::from_millis(1));
                }
                if until.load(Ordering::Relaxed) {
                    return;
                }
                // 127.64.0.0 to 127.127.255.255.
                let source = Ipv4Addr::from_bits((127 << 24) + (64 << 16) + i % (64 << 16));
                UdpSocket::bind((source, 0)).unwrap().send_to(packet, to).unwrap();
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { ended, sent, thread: Some(thread) }
    }

    fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Waits until this many packets have been sent.
    fn until(&self, sent: u64) {
        while self.sent() < sent {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || !matches!(ended, Some(Err(_))), "the flood broke off");
    }
}

/// Packets against the third agent, which accepts the links of both other agents.
fn flood(cluster: &Cluster, packets: usize, per_second: u64) -> Flood {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = runtime.block_on(async { RawClient::new(&cluster.path().join("ids/h1"), None) });
    let packets = runtime.block_on(client.initials(packets));
    let hosts = cluster.hosts();
    Flood::begin(packets, hosts[2]["address"].as_str().unwrap().parse().unwrap(), per_second)
}

/// The largest memory of the agents so far, MiB.
fn peak_mib(cluster: &Cluster) -> u64 {
    let peak = |agent: &std::process::Child| {
        let status = fs::read_to_string(format!("/proc/{}/status", agent.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
    };
    cluster.agents.iter().map(peak).max().unwrap()
}

/// Every run has links of its own, which must be established during the flood.
#[test]
fn a_sweep_continues_during_a_flood_of_incomplete_handshakes() {
    let cluster = Cluster::start("");
    let flood = flood(&cluster, 4_000, 500);
    // More handshakes than the agent keeps open at a time.
    flood.until(2_000);
    finish(cluster.run("r", "--set workload.synthetic.jobs=40"), 0);
    assert_eq!(cluster.summary("r").len(), 2);
    drop(flood);
    let log = fs::read_to_string(cluster.path().join("h3.log")).unwrap();
    assert!(log.contains("peers must prove their addresses"), "{log}");
}

#[test]
#[ignore = "takes minutes; run every night"]
fn ten_runs_end_during_two_thousand_handshakes_a_second() {
    let cluster = Cluster::start("");
    let flood = flood(&cluster, 30_000, 2_000);
    flood.until(20_000);
    let began = Instant::now();
    let values = (5..15).map(|ms| format!("\"{ms}ms\"")).collect::<Vec<_>>().join(",");
    let runs = format!("--set policy=[{{random={{}}}}] --set sweep={{\"network.one_way\"=[{values}]}}");
    finish(cluster.run("r", &runs), 0);
    assert_eq!(cluster.summary("r").len(), 10);
    // The flood lasts at least a minute.
    flood.until(120_000);
    let (sent, peak) = (flood.sent(), peak_mib(&cluster));
    eprintln!(
        "{sent} packets, ten runs in {:.1} s, agents of {peak} MiB at most",
        began.elapsed().as_secs_f64()
    );
    assert!(peak < 100, "{peak} MiB");
}
