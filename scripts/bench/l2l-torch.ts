/** PyTorch's step of the same transformer, in a process of its own that takes one step whenever it is asked. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export interface TorchShape {
  readonly width: number
  readonly layers: number
  readonly length: number
  readonly batch: number
  readonly heads: number
  readonly vocabulary: number
  readonly threads: number
}

export interface Torch {
  /** Takes a step. @returns its processor time, ms */
  stepCpuMs(): Promise<number>
  stop(): void
}

const SCRIPT = fileURLToPath(new URL('../../../scripts/bench/l2l-torch.py', import.meta.url))

/** @returns undefined where Python or PyTorch is missing */
export async function startTorch(shape: TorchShape): Promise<Torch | undefined> {
  const python = spawn(process.env.ADMB_PYTHON ?? 'python3', [SCRIPT, JSON.stringify(shape)], {
    // Threads that wait must not count as work.
    env: { ...process.env, OMP_WAIT_POLICY: 'passive' },
    stdio: ['pipe', 'pipe', 'ignore']
  })
  python.stdin.on('error', () => undefined)
  const lines = createInterface(python.stdout)[Symbol.asyncIterator]()
  const started = await Promise.race([lines.next(), once(python, 'error').catch(() => undefined)])
  if (started === undefined || !('value' in started) || started.value !== 'ready') {
    python.kill()
    return undefined
  }
  return {
    async stepCpuMs() {
      python.stdin.write('step\n')
      return Number((await lines.next()).value)
    },
    stop: () => python.stdin.end()
  }
}
