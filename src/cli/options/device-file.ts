/** The file of `admb plan --device`: figures of a device that is not here. */
import { readFile } from 'node:fs/promises'
import * as z from 'zod'
import { parseYaml } from '../../base/files.js'
import type { DeviceFigures } from '../../l2l/index.js'
import { UsageError } from '../errors.js'
import { bytes } from './values.js'

const amount = z.union([
  z.number().positive(),
  z.string().transform((word, { addIssue }) => {
    try {
      return bytes(word)
    } catch {
      addIssue({ code: 'custom', message: 'expected bytes, such as 80GB' })
      return z.NEVER
    }
  })
])

const schema = z.strictObject({
  name: z.string().default('device'),
  memory: amount.optional(),
  flops: z.number().positive(),
  'memory-bandwidth': amount,
  transfer: amount
})

const EXAMPLE =
  'give flops, memory-bandwidth and transfer for each second, such as flops: 60e12, memory-bandwidth: 3TB, transfer: 25GB'

export interface DeviceFile extends DeviceFigures {
  readonly name: string
  /** Bytes. @default no limit */
  readonly memory?: number
}

/** @throws UsageError */
export async function readDevice(path: string): Promise<DeviceFile> {
  let content: unknown
  try {
    content = parseYaml(await readFile(path, 'utf8'))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new UsageError(`cannot read the device ${path} (${code ?? message.split('\n')[0]}): ${EXAMPLE}`)
  }
  const { data, error } = schema.safeParse(content)
  if (data === undefined) {
    const [{ path: key, message }] = error.issues
    throw new UsageError(`${path}: ${[key.join('.'), message].filter(part => part !== '').join(': ')}; ${EXAMPLE}`)
  }
  const { 'memory-bandwidth': memoryBandwidth, ...rest } = data
  return { ...rest, memoryBandwidth }
}
