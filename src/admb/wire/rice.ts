/**
 * Rice codes of integers (Rice and Plaunt, 1971), and tables that decode several of them at once.
 * The format is specified in `docs/reference/protocol.md`.
 */

/** A quotient of this many ones is followed by the number itself, in 32 bits. */
export const ESCAPE = 16
/** Maximum magnitude of an element: zigzag codes fit into 31 bits. */
export const MAX_MAGNITUDE = 2 ** 28

/** 0, −1, 1, −2, … as 0, 1, 2, 3, … */
export function zigzag(value: number): number {
  return (value << 1) ^ (value >> 31)
}

/** Bits that are looked up at once, and the maximum number of codes (non-zero elements) in them. */
export const WINDOW = 12
export const WINDOW_CODES = 8
export const WINDOW_ELEMENTS = 4
/**
 * Largest parameters for which that is faster than one code at a time: of dense chunks, and of the
 * magnitudes and gaps of sparse ones.
 */
export const MAX_TABLE_K = 3
export const MAX_TABLE_MAGNITUDE_K = 1
export const MAX_TABLE_GAP_K = 7

/** Codes at the beginning of windows, whose bits are the complements of those of the codes. */
export interface Windows {
  /** Number of complete codes + 16 · number of their bits + 256 · number of elements. */
  readonly counts: Uint16Array
  /** `WINDOW_CODES` for each window. */
  readonly codes: Uint8Array
}

/** Finds the codes of a dense chunk. */
export function tabulateDense(k: number, { counts, codes }: Windows): void {
  for (let window = 0; window < 1 << WINDOW; window++) {
    let length = 0
    let count = 0
    while (count < WINDOW_CODES) {
      const { value, end } = codeIn(~window, length, k)
      if (end > WINDOW) break
      codes[WINDOW_CODES * window + count++] = value
      length = end
    }
    counts[window] = count | (length << 4)
  }
}

/** Finds the elements of a sparse chunk with the parameter 0 of gaps, and the zeros before them. */
export function tabulateSparse(magnitude: number, { counts, codes }: Windows): void {
  for (let window = 0; window < 1 << WINDOW; window++) {
    let length = 0
    let count = 0
    let elements = 0
    for (;;) {
      // The sign is the last bit of the gap.
      const zeros = codeIn(~window, length, 1)
      const rest = codeIn(~window, zeros.end, magnitude)
      const next = count + (zeros.value >> 1) + 1
      if (rest.end > WINDOW || next > WINDOW_CODES) break
      codes[WINDOW_CODES * window + next - 1] = 2 * (rest.value + 1) - (zeros.value & 1)
      count = next
      length = rest.end
      elements++
    }
    counts[window] = count | (length << 4) | (elements << 8)
  }
}

/** The code that begins at a bit of a window. It is complete if it ends within the window. */
function codeIn(window: number, begin: number, k: number): { readonly value: number; readonly end: number } {
  const left = window << (32 - WINDOW + begin)
  const quotient = begin >= WINDOW ? 0 : Math.clz32(~left)
  const low = k === 0 ? 0 : (left << (quotient + 1)) >>> (32 - k)
  return { value: (quotient << k) | low, end: begin + quotient + 1 + k }
}

const elementTables: Int32Array[] = []

/**
 * For each window the element at its beginning: value · 2^16 + zeros before it · 2^4 + number of
 * bits; 0 if it is longer.
 */
export function elementsOf(gap: number, magnitude: number): Int32Array {
  const at = 2 * gap + magnitude
  elementTables[at] ??= Int32Array.from({ length: 1 << WINDOW }, (_, window) => {
    const zeros = codeIn(window, 0, gap)
    const rest = codeIn(window, zeros.end + 1, magnitude)
    if (rest.end > WINDOW) return 0
    const isNegative = (window >>> (WINDOW - 1 - zeros.end)) & 1
    const value = rest.value + 1
    return ((isNegative ? -value : value) << 16) | (zeros.value << 4) | rest.end
  })
  return elementTables[at]
}
