//! The standard normal distribution, with bit-identical results on every machine.

use anabranch_sim::math::{exp, ln};

/// The distribution function at `x`, with an absolute error of about 1e-15: G. Marsaglia,
/// "Evaluating the Normal Distribution" (2004).
pub(super) fn below(x: f64) -> f64 {
    if x.abs() > 8.0 {
        return if x < 0.0 { 0.0 } else { 1.0 };
    }
    let (mut sum, mut term, mut k) = (x, x, 1.0);
    loop {
        k += 2.0;
        term *= x * x / k;
        let next = sum + term;
        if next == sum {
            break;
        }
        sum = next;
    }
    let density = exp(-0.5 * x * x) * 0.398_942_280_401_432_7;
    (0.5 + sum * density).clamp(0.0, 1.0)
}

/// The quantile of `p`; ±8 at the ends. M. J. Wichura, algorithm AS 241 (1988), PPND16.
pub(super) fn quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * ratio(r, &CENTRE);
    }
    let tail = p.min(1.0 - p);
    if tail <= 0.0 {
        return 8.0f64.copysign(q);
    }
    let r = (-ln(tail)).sqrt();
    let x = if r <= 5.0 { ratio(r - 1.6, &MIDDLE) } else { ratio(r - 5.0, &FAR) };
    x.min(8.0).copysign(q)
}

/// Numerator and denominator of a rational function, highest power first.
type Rational = ([f64; 8], [f64; 8]);

fn ratio(r: f64, (above, below): &Rational) -> f64 {
    let polynomial = |terms: &[f64; 8]| terms.iter().fold(0.0, |sum, term| sum * r + term);
    polynomial(above) / polynomial(below)
}

const CENTRE: Rational = (
    [
        2.509_080_928_730_122_6e3,
        3.343_057_558_358_813e4,
        6.726_577_092_700_87e4,
        4.592_195_393_154_987e4,
        1.373_169_376_550_946_2e4,
        1.971_590_950_306_551_3e3,
        1.331_416_678_917_843_8e2,
        3.387_132_872_796_366_5,
    ],
    [
        5.226_495_278_852_854e3,
        2.872_908_573_572_194_3e4,
        3.930_789_580_009_271e4,
        2.121_379_430_158_659_7e4,
        5.394_196_021_424_751e3,
        6.871_870_074_920_579e2,
        4.231_333_070_160_091e1,
        1.0,
    ],
);
const MIDDLE: Rational = (
    [
        7.745_450_142_783_414e-4,
        2.272_384_498_926_918_4e-2,
        2.417_807_251_774_506e-1,
        1.270_458_252_452_368_4,
        3.647_848_324_763_204_5,
        5.769_497_221_460_691,
        4.630_337_846_156_546,
        1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-9,
        5.475_938_084_995_345e-4,
        1.519_866_656_361_645_7e-2,
        1.481_039_764_274_800_8e-1,
        6.897_673_349_851e-1,
        1.676_384_830_183_803_8,
        2.053_191_626_637_759,
        1.0,
    ],
);
const FAR: Rational = (
    [
        2.010_334_399_292_288_1e-7,
        2.711_555_568_743_487_6e-5,
        1.242_660_947_388_078_4e-3,
        2.653_218_952_657_612_4e-2,
        2.965_605_718_285_049e-1,
        1.784_826_539_917_291_3,
        5.463_784_911_164_114,
        6.657_904_643_501_103,
    ],
    [
        2.044_263_103_389_939_8e-15,
        1.421_511_758_316_446e-7,
        1.846_318_317_510_054_8e-5,
        7.868_691_311_456_133e-4,
        1.487_536_129_085_061_5e-2,
        1.369_298_809_227_358e-1,
        5.998_322_065_558_88e-1,
        1.0,
    ],
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_printed_law() {
        for (x, share) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_543),
            (-1.96, 0.024_997_895_148_220_4),
            (3.0, 0.998_650_101_968_37),
            (-5.0, 2.866_515_718_791_945e-7),
        ] {
            assert!((below(x) - share).abs() < 1e-14, "{x}: {}", below(x));
        }
        assert_eq!((below(-40.0), below(40.0)), (0.0, 1.0));
    }

    #[test]
    fn the_two_undo_each_other() {
        for i in 1..2000 {
            let p = f64::from(i) / 2000.0;
            assert!((below(quantile(p)) - p).abs() < 1e-14, "{p}");
        }
        for tail in [1e-6, 1e-10, 1e-12] {
            assert!((below(quantile(tail)) / tail - 1.0).abs() < 1e-3, "{tail}");
        }
        assert_eq!((quantile(0.0), quantile(1.0)), (-8.0, 8.0));
    }
}
