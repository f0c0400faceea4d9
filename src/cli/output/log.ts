/** Log lines on stderr: plain on a terminal, JSON otherwise. */
import type { Log, LogLevel } from '../../network/index.js'

export const LEVELS: readonly (LogLevel | 'silent')[] = ['debug', 'info', 'warn', 'error', 'silent']

export function createLog(level: LogLevel | 'silent'): Log {
  const lowest = LEVELS.indexOf(level)
  const line = process.stderr.isTTY === true ? forPeople : jsonLine
  return (severity, message, fields) => {
    if (LEVELS.indexOf(severity) >= lowest) process.stderr.write(line(severity, message, fields))
  }
}

const jsonLine: (...entry: Parameters<Log>) => string = (level, msg, fields) =>
  `${JSON.stringify({ level, time: new Date().toISOString(), ...fields, msg })}\n`

const forPeople: (...entry: Parameters<Log>) => string = (level, message) =>
  `\r\x1b[2K${new Date().toISOString().slice(11, 19)} ${level.padEnd(5)} ${message}\n`
