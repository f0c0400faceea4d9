/**
 * How weights reach the devices of other machines. Each of them receives all weights over its line, or the feed is sharded (L2L-p:
 * Pudipeddi et al.): with N such devices, each receives 1/N of a layer, and sends it to the N − 1 others. Sharded feeds are simulated only.
 */
import type { GroupDevice } from './types.js'

/** A device of another machine, with the bytes per millisecond of its line and of its share of this machine's line. */
export interface FedDevice {
  readonly device: number
  readonly line: number
  /** The smaller one of both speeds. */
  readonly rate: number
}

/** The line of the first device, if there is one, is that of this machine, which all others share. @param rows of each device */
export function fedDevices(devices: readonly GroupDevice[], rows: readonly number[]): FedDevice[] {
  const fed = devices.flatMap(({ lineBytesPerMs: line }, device) =>
    device > 0 && line !== undefined && rows[device] > 0 ? [{ device, line }] : []
  )
  const own = (devices[0].lineBytesPerMs ?? Number.POSITIVE_INFINITY) / fed.length
  return fed.map(each => ({ ...each, rate: Math.min(each.line, own) }))
}

/**
 * The times at which a device has each layer, on simulated lines that work in both directions at once.
 * @param bytes of each layer
 * @param startMs of each device: when it has its rows
 * @returns a list for each device
 */
export function arrivals(fed: readonly FedDevice[], bytes: readonly number[], startMs: number[], isSharded: boolean) {
  const n = isSharded ? fed.length : 1
  // When each device has its piece of a layer, has sent it to all others, and has received the layer.
  const [pieces, sent, whole] = [[...startMs], fed.map(() => 0), [...startMs]]
  const times = fed.map((): number[] => [])
  for (const layer of bytes) {
    for (const [d, { rate, line }] of fed.entries()) {
      pieces[d] += layer / n / rate
      sent[d] = Math.max(sent[d], pieces[d]) + (layer * (n - 1)) / n / line
    }
    const exchanged = n > 1 ? Math.max(...sent) : 0
    for (const [d, { line }] of fed.entries()) {
      whole[d] = Math.max(whole[d] + layer / line, pieces[d], exchanged)
      times[d].push(whole[d])
    }
  }
  return times
}

/** A lower bound of the time of a feed to a device, in closed form. @param bytes of all layers @param rows bytes of the rows */
export function feedMs(fed: readonly FedDevice[], d: number, bytes: number, rows: number, isSharded: boolean): number {
  const n = isSharded ? fed.length : 1
  const { rate, line } = fed[d]
  return Math.max(
    (bytes / n + rows) / rate,
    (bytes + rows) / line,
    ((bytes / n) * (n - 1)) / Math.min(...fed.map(each => each.line))
  )
}
