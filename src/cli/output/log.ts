/** Log lines on stderr: plain on a terminal, JSON otherwise. */
import { pino } from 'pino'
import type { Log, LogLevel } from '../../network/index.js'

export const LEVELS: readonly (LogLevel | 'silent')[] = ['debug', 'info', 'warn', 'error', 'silent']

export function createLog(level: LogLevel | 'silent'): Log {
  const forPeople = process.stderr.isTTY === true
  const logger = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: label => ({ level: label }) }
    },
    forPeople ? { write: line => process.stderr.write(readable(line)) } : { write: line => process.stderr.write(line) }
  )
  return (severity, message, fields) => logger[severity](fields, message)
}

function readable(line: string): string {
  const { level, time, msg } = JSON.parse(line) as { level: string; time: string; msg: string }
  return `\r\x1b[2K${time.slice(11, 19)} ${level.padEnd(5)} ${msg}\n`
}
