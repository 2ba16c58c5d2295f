//! 802.11 frames as observers see them.

use super::super::Network;
use crate::packet::LinkId;
use crate::trace::{Observer, WifiFrame};
use crate::wifi::{AirFrame, FrameKind};

impl Network {
    /// A frame has left the air.
    #[cold]
    pub(super) fn watch_wifi_frame(&mut self, frame: &AirFrame) {
        let Some(adhoc) = &self.adhoc else { return };
        let packet = match frame.kind {
            // The sender keeps a packet until its frame is settled, which is told after the frame itself.
            FrameKind::Data => {
                let current = &adhoc.interfaces[frame.from.0 as usize].current;
                let Some(current) = current.filter(|c| c.tag == frame.tag) else { return };
                Some(self.packets.peek(current.outbound.handle))
            }
            FrameKind::Rts | FrameKind::Cts | FrameKind::Ack => None,
        };
        let node = |station| adhoc.stations.node(station);
        let (from, to) = (node(frame.from.0), frame.to.map(|to| node(to.0)));
        let shown = WifiFrame { frame: *frame, from, to, packet };
        self.observers.iter_mut().for_each(|o| o.on_wifi_frame(frame.end, &shown));
    }

    /// An observer comes, who may want frames of the one radio or of the other.
    pub(in crate::network) fn attach_to_air(&mut self, observer: &mut dyn Observer) {
        let Some(adhoc) = &mut self.adhoc else {
            if let Some(wireless) = &mut self.wireless {
                wireless.attach(&self.links, observer);
            }
            return;
        };
        let numbered = (0..).map(LinkId).zip(&self.links);
        let on_air: Vec<LinkId> = numbered.filter(|(_, link)| link.is_wireless()).map(|(id, _)| id).collect();
        if observer.on_attach_wifi(&on_air, adhoc.wifi.phy()) {
            adhoc.wifi.show_frames();
        }
    }
}
