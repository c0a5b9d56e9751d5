mod common;
use anabranch_stack::connection::Protocol;
use common::*;
#[test]
#[ignore]
fn perf() {
    for (loss, ms) in [(0.0, 20), (0.001, 20), (0.0, 400)] {
        let mk = || { let mut p = Path::symmetric(100, ms); p.down.loss = loss; p.down.queue = 300_000; p };
        let mut c = config(Protocol::Mptcp, 3);
        c.congestion_control.entry = anabranch_stack::congestion::find("lia").unwrap();
        c.receive_buffer.max = 64<<20; c.send_buffer = 64<<20;
        let mut net = Pair::new(c.clone(), c, vec![mk(), mk(), mk()], 7);
        net.to_send = 1 << 40;
        let t = std::time::Instant::now();
        let mut n = 0u64;
        net.run_until(secs(30), |net| { n += 1; if n % 1000 == 0 { net.client.log().drain().for_each(drop); if let Some(s) = net.server.as_mut() { s.log().drain().for_each(drop) } } false });
        let dt = t.elapsed().as_secs_f64();
        println!("loss {loss} ms {ms}: {} MB, {:.0} kpkt/s of wall", net.received >> 20, net.received as f64 / 1428.0 / dt / 1e3);
    }
}
