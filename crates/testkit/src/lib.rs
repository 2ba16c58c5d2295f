//! anabranch-testkit
