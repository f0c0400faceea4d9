/** Formats bytes as `--device-memory` accepts them: `96.0 kB`, `12.3 MB` from 2^20 bytes on, `1.50 GB` from 2^30. */
export function formatBytes(bytes: number): string {
  return format(bytes, 0)
}

/**
 * Formats a limit and the larger number of bytes that is needed, with as many digits as it takes to tell them apart.
 * @returns both; the latter is rounded up, so that it suffices if it is given as the limit
 */
export function formatExcess(limit: number, needed: number): readonly [limit: string, needed: string] {
  for (let extra = 0; ; extra++) {
    const texts = [format(limit, extra), format(needed, extra, Math.ceil)] as const
    if (texts[0] !== texts[1] || limit >= needed) return texts
  }
}

function format(bytes: number, extra: number, round = Math.round): string {
  const [power, digits, unit] = bytes < 2 ** 20 ? [10, 1, 'kB'] : bytes < 2 ** 30 ? [20, 1, 'MB'] : [30, 2, 'GB']
  const scale = 10 ** (digits + extra)
  return `${(round((bytes / 2 ** power) * scale) / scale).toFixed(digits + extra)} ${unit}`
}
