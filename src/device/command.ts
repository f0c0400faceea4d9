/** Runs a program and waits for its end, for installations. */
import { spawn } from 'node:child_process'
import { DeviceError } from './types.js'

export interface CommandOptions {
  readonly cwd: string
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>
  /** Milliseconds after which the program is killed. */
  readonly limitMs: number
}

/** @throws DeviceError with the most informative line of the output, if the program fails */
export function runCommand(command: string, args: readonly string[], options: CommandOptions): Promise<void> {
  const { cwd, env, limitMs } = options
  const shown = [command, ...args.slice(0, 2)].join(' ').split('\n')[0]
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    const timer = setTimeout(() => child.kill('SIGKILL'), limitMs)
    let output = ''
    const append = (text: Buffer) => {
      output = (output + text).slice(-20_000)
    }
    child.stdout.on('data', append)
    child.stderr.on('data', append)
    child.once('error', error => {
      clearTimeout(timer)
      reject(new DeviceError(`cannot start ${command}: ${error.message}`))
    })
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      if (code === 0) resolve()
      else if (signal !== null) reject(new DeviceError(`${shown} timed out after ${Math.round(limitMs / 1000)} s`))
      else reject(new DeviceError(`${shown} failed: ${errorLine(output)}`))
    })
  })
}

/** The last line that contains an error, otherwise the last line. */
function errorLine(output: string): string {
  const lines = output.split('\n').filter(line => line.trim() !== '')
  return (lines.findLast(line => /(^|\s)(\w*Error|error|fatal)\b.*:/.test(line)) ?? lines.at(-1) ?? 'no output').trim()
}
