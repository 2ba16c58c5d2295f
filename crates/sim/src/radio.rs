//! IEEE 802.15.4: a channel that nodes share.
