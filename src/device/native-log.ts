/**
 * What TensorFlow's library says on standard error while it is loaded: that it is there, and what it was built for. Its own switch,
 * TF_CPP_MIN_LOG_LEVEL, is read after the first of these lines, and a worker thread's `process.env` is a copy that native code does
 * not see. So the switch is set by the C library, and what is written in the meantime is looked through before it goes on.
 */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { optionalImport } from './optional.js'

const SWITCH = 'TF_CPP_MIN_LOG_LEVEL'
/** Warnings and what is below are left out. */
const LEVEL = '2'
const STDERR = 2
/** Mere information, the note about where it goes, and the second line of one piece of it. */
const IDLE = /^(I\d{4} |WARNING: All log messages before absl::InitializeLog|To enable the following instructions: )/

type Koffi = typeof import('koffi')['default']

/** What the C library does for it. */
interface Native {
  setenv(name: string, value: string, overwrite: number): number
  dup(file: number): number
  dup2(file: number, as: number): number
  close(file: number): number
}

/** Loads without the idle lines, unless the user has set the switch. Without the package koffi some of them remain. */
export async function loadSilently(load: () => void): Promise<void> {
  if (process.env[SWITCH] !== undefined) {
    load()
    return
  }
  process.env[SWITCH] = LEVEL
  const native = await nativeFunctions()
  if (native === undefined) {
    load()
    return
  }
  native.setenv(SWITCH, LEVEL, 0)
  withoutIdleLines(native, load)
}

/** Standard error is a file meanwhile, for other threads as well; the lines that matter go on afterwards, whatever happens. */
function withoutIdleLines({ dup, dup2, close }: Native, work: () => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'admb-log-'))
  const path = join(folder, 'stderr')
  const file = openSync(path, 'w')
  const before = dup(STDERR)
  dup2(file, STDERR)
  try {
    work()
  } finally {
    dup2(before, STDERR)
    close(before)
    closeSync(file)
    const lines = readFileSync(path, 'utf8').split('\n')
    rmSync(folder, { recursive: true, force: true })
    const rest = lines.filter(line => !IDLE.test(line)).join('\n')
    if (rest !== '') writeSync(STDERR, rest)
  }
}

async function nativeFunctions(): Promise<Native | undefined> {
  if (process.platform === 'win32') return undefined
  try {
    const koffi = ((await optionalImport('koffi')) as { default: Koffi }).default
    const c = koffi.load(null)
    return {
      setenv: c.func('int setenv(const char *, const char *, int)'),
      dup: c.func('int dup(int)'),
      dup2: c.func('int dup2(int, int)'),
      // Node.js minds files of a worker that it has not opened itself.
      close: c.func('int close(int)')
    }
  } catch {
    return undefined
  }
}
