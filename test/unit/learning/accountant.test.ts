/** The accountant of differential privacy, against published values and the exact curve of the Gaussian mechanism. */
import assert from 'node:assert/strict'
import { epsilonFrom, epsilonOf, Privacy, rhoFor, rhoOf } from '../../../src/learning/privacy.js'

/** erfc for x ≥ 0, by a continued fraction (Abramowitz and Stegun, 7.1.14) or the series of erf. */
function erfc(x: number): number {
  if (x < 0) return 2 - erfc(-x)
  if (x < 2.5) {
    let [term, sum] = [x, x]
    for (let n = 1; n < 200; n++) {
      term *= (-x * x) / n
      sum += term / (2 * n + 1)
    }
    return 1 - (2 / Math.sqrt(Math.PI)) * sum
  }
  let fraction = 0
  for (let n = 400; n > 0; n--) fraction = n / 2 / (x + fraction)
  return Math.exp(-x * x) / Math.sqrt(Math.PI) / (x + fraction)
}

const normalTail = (x: number) => erfc(x / Math.SQRT2) / 2

/** δ of the Gaussian mechanism, exactly: Balle and Wang, "Improving the Gaussian Mechanism", ICML 2018, Theorem 8. */
function exactDelta(epsilon: number, rho: number): number {
  const mu = Math.sqrt(2 * rho)
  return normalTail(epsilon / mu - mu / 2) - Math.exp(epsilon) * normalTail(epsilon / mu + mu / 2)
}

describe('the accountant', () => {
  it('gives the divergence that TensorFlow Privacy publishes for the Gaussian mechanism without sampling', () => {
    // compute_rdp(q=1, noise_multiplier=10, steps=1, orders=20) is 0.1.
    assert.ok(Math.abs(20 * rhoOf(10) - 0.1) < 1e-15)
  })

  it('converts divergences to the ε that TensorFlow Privacy publishes', () => {
    // Its test of get_privacy_spent: orders 2 to 32, each with a divergence of 1.1, and δ = 1e-5.
    const divergences = Array.from({ length: 31 }, (_, i) => [i + 2, 1.1] as const)
    assert.ok(Math.abs(epsilonFrom(divergences, 1e-5) - 1.32783806176) < 1e-9)
  })

  it('is never optimistic, and close to the exact ε of the Gaussian mechanism', () => {
    assert.ok(Math.abs(exactDelta(1, 0.5) - 0.126936737507) < 1e-9)
    for (const delta of [1e-3, 1e-5, 1e-8]) {
      for (const rho of [0.001, 0.01, 0.1, 1, 5]) {
        const epsilon = epsilonOf(rho, delta)
        assert.ok(exactDelta(epsilon, rho) <= delta, `ρ ${rho}, δ ${delta}: ε ${epsilon} is too small`)
        assert.ok(exactDelta(epsilon * 0.6, rho) > delta, `ρ ${rho}, δ ${delta}: ε ${epsilon} is far too large`)
      }
    }
  })

  it('is at most the bound of Mironov, Proposition 3', () => {
    for (const rho of [0.001, 0.1, 3]) {
      const bound = rho + 2 * Math.sqrt(rho * Math.log(1e6))
      assert.ok(epsilonOf(rho, 1e-6) <= bound)
      assert.ok(epsilonOf(rho, 1e-6) > 0.5 * bound)
    }
  })

  it('finds the largest ρ that ε allows', () => {
    for (const epsilon of [0.01, 0.5, 1, 8, 100]) {
      const rho = rhoFor(epsilon, 1e-6)
      assert.ok(epsilonOf(rho, 1e-6) <= epsilon)
      assert.ok(epsilonOf(rho * 1.0001, 1e-6) > epsilon)
    }
  })

  it('composes releases: twice as many need √2 times the noise', () => {
    const [one, two] = [1, 2].map(releases => new Privacy({ epsilon: 2, delta: 1e-6, clip: 3, releases }))
    assert.ok(Math.abs(two.deviation / one.deviation - Math.SQRT2) < 1e-9)
    assert.ok(one.allows(one.rho) && two.allows(2 * two.rho))
    assert.ok(!one.allows(2 * one.rho) && !two.allows(3 * two.rho))
    assert.ok(two.epsilonOf(2 * two.rho) <= 2)
  })

  it('refuses options that are missing, unknown or out of range', () => {
    const good = { epsilon: 1, delta: 1e-6, clip: 1 }
    const bad = [
      { delta: 1e-6, clip: 1 },
      { ...good, epsilon: 0 },
      { ...good, epsilon: Number.NaN },
      { ...good, delta: 1 },
      { ...good, delta: 0 },
      { ...good, clip: -1 },
      { ...good, releases: 1.5 },
      { ...good, sigma: 1 }
    ]
    for (const options of bad) {
      assert.throws(() => new Privacy(options as typeof good), { code: 'ERR_OPTION' }, JSON.stringify(options))
    }
  })
})
