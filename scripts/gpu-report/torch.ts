/** The same model in PyTorch, if a Python with PyTorch is found: `bert-torch.py` prints its rows as JSON lines. */
import { fileURLToPath } from 'node:url'
import type { Row } from '../bench/row.js'
import { CLASSES, shapeOf } from './bert-model.js'
import type { Size } from './options.js'
import type { Outcome } from './parts.js'
import { runProcess } from './process.js'

const SCRIPT = fileURLToPath(new URL('../../../scripts/gpu-report/bert-torch.py', import.meta.url))
const IMPORT_LIMIT_MS = 60_000

export async function runTorch(size: Size, limitMs: number, emit: (row: Row) => void): Promise<Outcome> {
  const python = process.env.ADMB_PYTHON ?? 'python3'
  const start = performance.now()
  const found = await runProcess(python, ['-c', 'import torch'], {
    limitMs: Math.min(limitMs, IMPORT_LIMIT_MS),
    onLine: () => undefined
  })
  if (found.code !== 0) return { status: 'skipped', error: `${python} has no PyTorch (${found.error})` }
  const leftMs = limitMs - (performance.now() - start)
  // The script ends before the time limit would stop it.
  const task = { ...shapeOf(size), classes: CLASSES, seconds: (0.8 * leftMs) / 1000 }
  const { code, timedOut, error } = await runProcess(python, [SCRIPT, JSON.stringify(task)], {
    limitMs: leftMs,
    onLine: line => {
      if (line.startsWith('{"name":')) emit(JSON.parse(line) as Row)
    }
  })
  if (code === 0) return { status: 'done' }
  return { status: timedOut ? 'stopped' : 'failed', error }
}
