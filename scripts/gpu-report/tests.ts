/** The tests of layers, heads, schedules and the device itself, on every device that works on this machine. */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DeviceName } from '../../src/device/index.js'
import type { Row } from '../bench/row.js'
import type { Size } from './options.js'
import type { Outcome } from './parts.js'
import { runProcess } from './process.js'
import type { TestFailure } from './report.js'

const DIST = fileURLToPath(new URL('../..', import.meta.url))
const FILES: Readonly<Record<Size, readonly string[]>> = {
  full: [
    'test/*/device/*.test.js',
    'test/*/l2l/layers.test.js',
    'test/property/l2l/heads.test.js',
    'test/property/l2l/schedules.test.js'
  ],
  tiny: ['test/property/l2l/heads.test.js']
}
/** A test may compile many shaders. */
const TIMEOUT_MS = 100_000

interface MochaTest {
  readonly fullTitle: string
  readonly err?: string
}

export async function runTests(
  size: Size,
  device: DeviceName,
  limitMs: number,
  emit: (row: Row) => void
): Promise<Outcome> {
  const mocha = createRequire(import.meta.url).resolve('mocha/bin/mocha.js')
  const fixed = [mocha, '--no-config', '--exit', '--reporter', 'json-stream', '--timeout', `${TIMEOUT_MS}`]
  const counts = { passed: 0, onDevice: 0, skipped: 0 }
  const failures: TestFailure[] = []
  let hasEnded = false
  const onLine = (line: string) => {
    const [event, value] = eventOf(line)
    if (event === 'pass') {
      counts.passed++
      if ((value as MochaTest).fullTitle.includes(device)) counts.onDevice++
    } else if (event === 'fail') {
      const { fullTitle, err = 'no message' } = value as MochaTest
      failures.push({ title: fullTitle, message: err.split('\n')[0] })
    } else if (event === 'end') {
      counts.skipped = (value as { readonly pending: number }).pending
      hasEnded = true
    }
  }
  const files = FILES[size].map(file => join(DIST, file))
  const { timedOut, error } = await runProcess(process.execPath, [...fixed, ...files], { limitMs, onLine })
  emit({ name: 'tests passed', value: counts.passed, unit: 'tests', details: { device, onDevice: counts.onDevice } })
  emit({ name: 'tests failed', value: failures.length, unit: 'tests' })
  emit({ name: 'tests skipped', value: counts.skipped, unit: 'tests' })
  if (timedOut) return { status: 'stopped', error, failures }
  if (!hasEnded) return { status: 'failed', error, failures }
  return failures.length > 0 ? { status: 'failed', error: 'tests failed', failures } : { status: 'done', failures }
}

/** Mocha prints an event as a pair in JSON; tests may print other lines. */
function eventOf(line: string): [event: string, value: unknown] {
  try {
    const parsed: unknown = line.startsWith('["') ? JSON.parse(line) : undefined
    return Array.isArray(parsed) ? [String(parsed[0]), parsed[1]] : ['', undefined]
  } catch {
    return ['', undefined]
  }
}
