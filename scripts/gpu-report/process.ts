/** A process with a time limit, whose output is read line by line. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

export interface ProcessOptions {
  readonly limitMs: number
  /** Called with each line of stdout. */
  readonly onLine: (line: string) => void
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>
}

export interface Ended {
  /** Null if the process was killed or was not started. */
  readonly code: number | null
  readonly timedOut: boolean
  /** The error in one line, if there was one. */
  readonly error: string | undefined
}

/** Bytes of stderr that are kept to look for an error. */
const KEPT = 20_000

/** Never throws: a process that cannot be started has an error. */
export function runProcess(command: string, args: readonly string[], options: ProcessOptions): Promise<Ended> {
  const { limitMs, onLine, env } = options
  return new Promise(resolve => {
    const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    let timedOut = false
    let stderr = ''
    const timer = setTimeout(() => {
      timedOut = true
      child.kill('SIGKILL')
    }, limitMs)
    const lines = createInterface({ input: child.stdout })
    lines.on('line', onLine)
    child.stderr.on('data', text => {
      stderr = `${stderr}${text}`.slice(-KEPT)
    })
    child.once('error', error => {
      clearTimeout(timer)
      resolve({ code: null, timedOut: false, error: error.message })
    })
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      const error = timedOut ? `stopped after ${(limitMs / 1000).toFixed(1)} s` : errorOf(code, signal, stderr)
      resolve({ code, timedOut, error })
    })
  })
}

function errorOf(code: number | null, signal: NodeJS.Signals | null, stderr: string): string | undefined {
  if (code === 0) return undefined
  const lines = stderr.split('\n').filter(line => line.trim() !== '')
  const reason = lines.findLast(line => /\b\w*Error\b.*:|\berror:/i.test(line)) ?? lines.at(-1) ?? 'no message'
  return `${signal === null ? `exit code ${code}` : signal}: ${reason.trim()}`
}
