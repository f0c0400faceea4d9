/** Formats bytes as `--device-memory` accepts them: `12.3 MB`, or `96.0 kB` below 2^20 bytes. */
export function formatBytes(bytes: number): string {
  return bytes < 2 ** 20 ? `${(bytes / 2 ** 10).toFixed(1)} kB` : `${(bytes / 2 ** 20).toFixed(1)} MB`
}
