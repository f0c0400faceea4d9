/** Describes the machine of a report. */
import { arch, availableParallelism, cpus, platform, release, totalmem } from 'node:os'
import { runProcess } from './process.js'

export interface Machine {
  readonly os: string
  readonly processor: string
  readonly cores: number
  readonly memoryBytes: number
  readonly node: string
  /** A line for each NVIDIA GPU: name, driver and memory. Empty if `nvidia-smi` is missing. */
  readonly gpus: readonly string[]
}

const SMI_LIMIT_MS = 10_000

export async function describeMachine(): Promise<Machine> {
  const gpus: string[] = []
  const query = ['--query-gpu=name,driver_version,memory.total', '--format=csv,noheader']
  const ended = await runProcess('nvidia-smi', query, { limitMs: SMI_LIMIT_MS, onLine: line => gpus.push(line.trim()) })
  return {
    os: `${platform()} ${arch()} ${release()}`,
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    node: process.versions.node,
    gpus: ended.code === 0 ? gpus.filter(line => line !== '') : []
  }
}
