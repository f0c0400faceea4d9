/** Running another program to its end, for installations. */
import { spawn } from 'node:child_process'
import { DeviceError } from './types.js'

export interface CommandOptions {
  readonly cwd: string
  /** Beside the program's own environment. */
  readonly env?: Readonly<Record<string, string>>
  /** Milliseconds after which it is ended. */
  readonly limitMs: number
}

/** @throws DeviceError with the line of its output that tells most, if it fails */
export function runCommand(command: string, args: readonly string[], options: CommandOptions): Promise<void> {
  const { cwd, env, limitMs } = options
  const shown = [command, ...args.slice(0, 2)].join(' ').split('\n')[0]
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    const timer = setTimeout(() => child.kill('SIGKILL'), limitMs)
    let output = ''
    const keep = (text: Buffer) => {
      output = (output + text).slice(-20_000)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    child.once('error', error => {
      clearTimeout(timer)
      reject(new DeviceError(`${command} cannot be started: ${error.message}`))
    })
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      if (code === 0) resolve()
      else if (signal !== null) reject(new DeviceError(`${shown} was ended after ${Math.round(limitMs / 1000)} s`))
      else reject(new DeviceError(`${shown} failed: ${errorLine(output)}`))
    })
  })
}

/** The last line that names an error, or else the last one. */
function errorLine(output: string): string {
  const lines = output.split('\n').filter(line => line.trim() !== '')
  return (
    lines.findLast(line => /(^|\s)(\w*Error|error|fatal)\b.*:/.test(line)) ??
    lines.at(-1) ??
    'it said nothing'
  ).trim()
}
