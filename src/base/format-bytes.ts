/** How amounts of memory are told: one way for errors, plans and reports. */

/** Bytes for people, as `--device-memory` takes them: `12.3 MB`, or `96.0 kB` below a megabyte, which is 2^20 bytes. */
export function formatBytes(bytes: number): string {
  return bytes < 2 ** 20 ? `${(bytes / 2 ** 10).toFixed(1)} kB` : `${(bytes / 2 ** 20).toFixed(1)} MB`
}
