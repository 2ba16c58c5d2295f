//! The schedule of section VII of "Multipath TCP Over Multi-Hop Heterogeneous Wireless IoT Networks".
