/** Whether all elements are finite. */
export function isFiniteBlock(block: Float32Array): boolean {
  // x − x is 0 for a finite x and NaN otherwise, so one sum checks the whole block without a branch.
  let bad = 0
  for (let i = 0; i < block.length; i++) bad += block[i] - block[i]
  return bad === 0
}
