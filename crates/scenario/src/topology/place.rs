//! Distance between places on the Earth, and the delay of light in a fibre between them.

use anabranch_core::time::Duration;

use anabranch_sim::math::sin_cos;

/// Longitude (east) and latitude (north) in degrees.
pub(super) type Coordinates = (f64, f64);

/// Mean radius of the Earth in metres (IUGG).
const RADIUS: f64 = 6_371_008.8;
/// Two thirds of the speed of light in m/s: the refractive index of a fibre is about 1.5.
const SPEED: f64 = 2.0 / 3.0 * 299_792_458.0;

/// Length of the great circle in metres.
pub(super) fn distance(a: Coordinates, b: Coordinates) -> f64 {
    let half = |from: f64, to: f64| sin_cos((to - from).to_radians() / 2.0).0;
    let (east, north) = (half(a.0, b.0), half(a.1, b.1));
    let cosine = |degrees: f64| sin_cos(degrees.to_radians()).1;
    // The haversine formula keeps its precision for small distances.
    let haversine = north * north + cosine(a.1) * cosine(b.1) * east * east;
    2.0 * RADIUS * arcsine(haversine.clamp(0.0, 1.0).sqrt())
}

/// Delay of light in a fibre.
pub(super) fn delay(a: Coordinates, b: Coordinates) -> Duration {
    Duration::from_secs_f64(distance(a, b) / SPEED)
}

/// Arcsine of 0 to 1 in radians, from IEEE 754 basic operations only, so that it is equal on all
/// machines.
fn arcsine(sine: f64) -> f64 {
    if sine > 0.75 {
        // asin s = pi/2 - 2 asin sqrt((1 - s)/2).
        return std::f64::consts::FRAC_PI_2 - 2.0 * arcsine(((1.0 - sine) / 2.0).sqrt());
    }
    // Newton's method doubles the number of correct digits in each step; the first guess is at most
    // 10 % off.
    let mut angle = sine * (1.0 + sine * sine / 6.0);
    for _ in 0..5 {
        let (of_angle, slope) = sin_cos(angle);
        angle -= (of_angle - sine) / slope;
    }
    angle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_on_the_earth() {
        let degree = RADIUS * std::f64::consts::PI / 180.0;
        for (a, b, metres) in [
            ((0.0, 0.0), (0.0, 0.0), 0.0),
            // One degree of latitude, and one of longitude at 60 degrees north: half as long, and a
            // little shorter along the great circle.
            ((10.0, 50.0), (10.0, 51.0), degree),
            ((0.0, 60.0), (1.0, 60.0), 0.499_995 * degree),
            // A quarter and a half of the way around.
            ((0.0, 0.0), (90.0, 0.0), 90.0 * degree),
            ((-20.0, 30.0), (160.0, -30.0), 180.0 * degree),
            // Across the date line.
            ((179.0, 0.0), (-179.0, 0.0), 2.0 * degree),
        ] {
            let found = distance(a, b);
            assert!((found - metres).abs() <= 1e-5 * metres + 1e-6, "{a:?} {b:?}: {found} not {metres}");
        }
        // New York and Los Angeles: 3936 km, 19.7 ms.
        let (york, angeles) = ((-74.005_97, 40.714_27), (-118.243_68, 34.052_23));
        assert!((distance(york, angeles) / 3.936e6 - 1.0).abs() < 1e-3);
        assert!((delay(york, angeles).as_secs_f64() - 0.019_69).abs() < 2e-5);
    }

    #[test]
    fn arcsines_are_what_the_platform_says() {
        for i in 0..=1000 {
            let sine = f64::from(i) / 1000.0;
            assert!((arcsine(sine) - sine.asin()).abs() < 1e-15, "{sine}");
        }
    }
}
