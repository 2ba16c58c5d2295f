//! IEEE 802.11 frames as observers see them.

use super::Adhoc;
use crate::network::Network;
use crate::trace::WifiFrame;
use crate::wifi::{AirFrame, FrameKind};

impl Adhoc {
    /// Reports a frame whose transmission has ended.
    #[cold]
    pub(super) fn watch_wifi_frame(net: &mut Network, frame: &AirFrame) {
        let Some(adhoc) = &net.media.adhoc else { return };
        let packet = match frame.kind {
            // The sender keeps a packet until its frame is settled, which is reported after the
            // frame itself.
            FrameKind::Data => {
                let current = &adhoc.interfaces[frame.from.0 as usize].current;
                let Some(current) = current.filter(|c| c.tag == frame.tag) else { return };
                Some(net.packets.peek(current.outbound.handle))
            }
            FrameKind::Rts | FrameKind::Cts | FrameKind::Ack => None,
        };
        let node = |station| adhoc.stations.node(station);
        let (from, to) = (node(frame.from.0), frame.to.map(|to| node(to.0)));
        let shown = WifiFrame { frame: *frame, from, to, packet };
        net.observers.tell(|o| o.on_wifi_frame(frame.end, &shown));
    }
}
