/** The options of `npm run gpu-report`. */
import { parseArgs } from 'node:util'
import { DEVICE_NAMES, type DeviceName } from '../../src/device/index.js'

/** `full` measures BERT-large; `tiny` runs the same code in seconds on any device. */
export const SIZES = ['full', 'tiny'] as const
export type Size = (typeof SIZES)[number]

export interface Options {
  /** `auto` takes the first GPU that works. */
  readonly device: DeviceName | 'auto'
  readonly out: string
  readonly minutes: number
  readonly size: Size
  /** Names of the parts to run, or undefined for all. */
  readonly parts: readonly string[] | undefined
}

export class UsageError extends Error {}

export const USAGE = `npm run gpu-report -- [--device auto|${DEVICE_NAMES.join('|')}] [--out FILE] [--minutes N]
                     [--size ${SIZES.join('|')}] [--parts NAME,NAME]`

/** @throws UsageError */
export function parseOptions(args: readonly string[]): Options {
  const { device, out, minutes, size, parts } = valuesOf(args)
  const limit = Number(minutes)
  if (!(limit > 0)) throw new UsageError(`--minutes ${minutes} is not a positive number`)
  return {
    device: oneOf('--device', ['auto', ...DEVICE_NAMES], device),
    out,
    minutes: limit,
    size: oneOf('--size', SIZES, size),
    parts: parts?.split(',')
  }
}

function valuesOf(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        device: { type: 'string', default: 'auto' },
        out: { type: 'string', default: 'gpu-report.json' },
        minutes: { type: 'string', default: '8' },
        size: { type: 'string', default: 'full' },
        parts: { type: 'string' }
      }
    }).values
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

function oneOf<T extends string>(option: string, allowed: readonly T[], given: string): T {
  const found = allowed.find(name => name === given)
  if (found === undefined) throw new UsageError(`${option} ${given} is not one of ${allowed.join(', ')}`)
  return found
}
