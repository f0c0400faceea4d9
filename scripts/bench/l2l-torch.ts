/** Runs steps of the same transformer in PyTorch, in a separate process. */
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
  /** Runs a step. @returns its CPU time in milliseconds */
  stepCpuMs(): Promise<number>
  stop(): void
}

const SCRIPT = fileURLToPath(new URL('../../../scripts/bench/l2l-torch.py', import.meta.url))

/** @returns undefined if Python or PyTorch is not installed */
export async function startTorch(shape: TorchShape): Promise<Torch | undefined> {
  const python = spawn(process.env.ADMB_PYTHON ?? 'python3', [SCRIPT, JSON.stringify(shape)], {
    // Spinning threads would count as CPU time.
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
