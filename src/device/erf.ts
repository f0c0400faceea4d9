/** The error function erf(x) = 1 − (a₁t + … + a₅t⁵)·exp(−x²) with t = 1/(1 + p·x), x ≥ 0: p, and a₅ to a₁ (Abramowitz and Stegun, 7.1.26). */
export const ERF_SCALE = 0.3275911
export const ERF_POLYNOMIAL = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592] as const
