/** The report: its JSON format, and a table for the terminal. */
import type { DeviceName } from '../../src/device/index.js'
import type { Row } from '../bench/row.js'
import type { Machine } from './machine.js'

/** `stopped`: the part exceeded its time; its printed rows are kept. */
export type Status = 'done' | 'failed' | 'stopped' | 'skipped'

export interface TestFailure {
  readonly title: string
  readonly message: string
}

export interface PartReport {
  readonly name: string
  readonly status: Status
  readonly seconds: number
  readonly limitSeconds: number
  /** Why the part has another status than `done`. */
  readonly error?: string
  readonly rows: readonly Row[]
  /** For the part that runs tests. */
  readonly failures?: readonly TestFailure[]
}

export interface OpenedDevice {
  readonly name: DeviceName
  /** The GPU and its driver, as the backend describes them. */
  readonly detail: string
  /** Which other devices were tried, and why they do not work. */
  readonly why: string
}

export interface Report {
  /** Version of this format. */
  readonly format: 1
  readonly version: string
  readonly date: string
  readonly size: string
  readonly minutes: number
  readonly seconds: number
  readonly machine: Machine
  /** Undefined if no device was opened. */
  readonly device: OpenedDevice | undefined
  readonly parts: readonly PartReport[]
}

export function tableOf({ machine, device, seconds, parts }: Report): string {
  const lines = [
    `machine  ${machine.processor}, ${machine.cores} cores, ${machine.os}, Node.js ${machine.node}`,
    ...machine.gpus.map(gpu => `gpu      ${gpu}`),
    `device   ${device === undefined ? 'none' : `${device.name}, ${device.detail}`}`
  ]
  for (const { name, status, seconds: taken, error, rows, failures = [] } of parts) {
    lines.push('', `${name}: ${status} in ${taken.toFixed(1)} s${error === undefined ? '' : ` (${error})`}`)
    lines.push(...rows.map(lineOf), ...failures.map(({ title, message }) => `  FAILED ${title}: ${message}`))
  }
  return [...lines, '', `${seconds.toFixed(0)} s in total`].join('\n')
}

function lineOf({ name, value, unit, details = {} }: Row): string {
  const shown = Object.entries(details).map(([key, given]) => `${key} ${[given].flat().map(numberOf).join(' ')}`)
  return `  ${name.padEnd(52)} ${`${numberOf(value)} ${unit}`.padEnd(20)} ${shown.join(', ')}`.trimEnd()
}

function numberOf(value: number | string): string {
  return typeof value === 'string' ? value : value.toLocaleString('en-US', { maximumSignificantDigits: 4 })
}
