/**
 * How a predictor is marked: a colour, and a letter for eyes and prints that do not tell colours apart. The palette keeps apart under
 * the usual colour blindnesses; its values for light and dark stand in `browser/style.css`.
 */

/** Colours `--mark-0` … of the style sheet. */
export const MARKS = 8

/** CSS value of a group's colour. More groups than colours share them, and differ by letter. */
export function markColour(group: number): string {
  return `var(--mark-${group % MARKS})`
}

/** A, B, …, Z, A2, … */
export function markLetter(group: number): string {
  const round = Math.floor(group / 26)
  return String.fromCharCode(65 + (group % 26)) + (round === 0 ? '' : String(round + 1))
}
