//! A striping policy for SET: the next chunk goes to the session with the fewest bytes in flight,
//! among those with room.

use anabranch_core::set::CustomStriping;
use anabranch_core::set::striping::{FileView, PathView, Striping};

pub(crate) const LEAST: CustomStriping = CustomStriping::new("least-outstanding", |()| Box::new(Least));

#[derive(Debug)]
struct Least;

impl Striping for Least {
    fn choose(&mut self, paths: &[PathView], _: &FileView) -> Option<usize> {
        let open = paths.iter().enumerate().filter(|(_, path)| path.usable && path.chunk > 0);
        open.min_by_key(|(_, path)| path.outstanding).map(|(index, _)| index)
    }
}
