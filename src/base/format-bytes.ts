/** Formats bytes as `--device-memory` accepts them: `96.0 kB`, `12.3 MB` from 2^20 bytes on, `1.50 GB` from 2^30. */
export function formatBytes(bytes: number): string {
  if (bytes < 2 ** 20) return `${(bytes / 2 ** 10).toFixed(1)} kB`
  return bytes < 2 ** 30 ? `${(bytes / 2 ** 20).toFixed(1)} MB` : `${(bytes / 2 ** 30).toFixed(2)} GB`
}
