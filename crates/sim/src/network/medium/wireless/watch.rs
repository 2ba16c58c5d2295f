//! Frames as observers see them.

use super::Wireless;
use crate::frames::{AirFrame, Content, Reception};
use crate::network::Network;
use crate::radio::{Effect, FrameKind, Station};

impl Wireless {
    /// Reports a frame whose transmission has ended.
    #[cold]
    pub(super) fn watch_frame(net: &mut Network, effect: Effect) {
        let Effect::Frame { start, end, from, to, seq, psdu_len, tag, kind, cut, receivers } = effect else {
            return;
        };
        let Some(wireless) = &net.media.wireless else { return };
        let content = match kind {
            FrameKind::Ack(csl) => Content::Ack(csl),
            FrameKind::Wakeup { rendezvous } => Content::Wakeup { rendezvous },
            FrameKind::Data { version, pending } => {
                // The sender keeps a packet until its last frame is settled, which is handled after
                // this effect.
                let Some(current) = &wireless.interfaces[from.0 as usize].current else { return };
                debug_assert_eq!(current.number, (tag >> 32) as u32);
                let packet = net.packets.peek(current.outbound.handle);
                Content::Piece {
                    packet,
                    cut: &current.cut,
                    piece: tag as u32,
                    tag: current.number as u16,
                    version,
                    pending,
                }
            }
        };
        let reception = match receivers {
            _ if cut => Reception::BrokenOff,
            0 => Reception::Missed,
            1.. => Reception::Received,
        };
        let node = |station: Station| wireless.stations.node(station.0);
        let (from, to) = (node(from), to.map(node));
        let fcs = wireless.radio.phy().fcs;
        let frame = AirFrame { start, end, from, to, seq, psdu_len, fcs, reception, content };
        net.observers.tell(|o| o.on_frame(end, &frame));
    }

    /// Reports a frame that was broken off when a station went down or came up, while its packet
    /// still exists. Other effects of the change are dropped: the node need not be told that its
    /// station is done.
    pub(super) fn watch_last_frame(net: &mut Network) {
        while let Some(effect) = net.media.wireless.as_mut().and_then(|w| w.radio.poll_effect()) {
            Self::watch_frame(net, effect);
        }
    }
}
