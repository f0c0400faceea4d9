/**
 * What the join page computes apart from its elements: rows of text in requests (whole rows, with the header of CSV in front of
 * each), and the addresses at which a tab can connect to the peer that has served the page.
 */
import { RecordLocator } from '../../data/formats/records.js'

type RowFormat = 'libsvm' | 'jsonl' | 'csv'

/** Rows of a request. */
export interface Rows {
  readonly format: RowFormat
  readonly text: string
  /** Without a header. */
  readonly count: number
}

/** The format of lines, by the first of them. */
export function formatOf(line: string): RowFormat {
  if (line.trimStart().startsWith('{')) return 'jsonl'
  return /^\s*\S+(\s+\d+:\S+)+\s*(#.*)?$/.test(line) ? 'libsvm' : 'csv'
}

/** Divides text into requests of up to `size` rows. */
export class RowReader {
  readonly #size: number
  readonly #records = new RecordLocator()
  #rest = ''
  #format: RowFormat | undefined
  #header = ''
  /** The lines of an incomplete CSV record, with their line ends. */
  #open = ''
  #rows: string[] = []

  /** @param size rows in a request @param format @default by the first line */
  constructor(size: number, format?: RowFormat) {
    this.#size = size
    this.#format = format
  }

  /** @returns the requests that are complete */
  push(text: string): Rows[] {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    return lines.flatMap(line => this.#line(line))
  }

  /** @returns the requests that remain */
  end(): Rows[] {
    const last = this.#rest === '' ? [] : this.#line(this.#rest)
    // A quoted field that is not closed: the peer refuses it with the reason.
    const open = this.#open === '' ? [] : this.#row(this.#open.slice(0, -1))
    this.#rest = ''
    this.#open = ''
    return [...last, ...open, ...this.#take()]
  }

  #line(line: string): Rows[] {
    if (this.#open === '' && line.trim() === '') return []
    this.#format ??= formatOf(line)
    const record = this.#open + line
    if (this.#format === 'csv' && this.#records.locate(new TextEncoder().encode(`${line}\n`)).last === 0) {
      this.#open = `${record}\n`
      return []
    }
    this.#open = ''
    return this.#row(record)
  }

  #row(row: string): Rows[] {
    if (this.#format === 'csv' && this.#header === '') {
      this.#header = `${row}\n`
      return []
    }
    const full = this.#rows.length >= this.#size ? this.#take() : []
    this.#rows.push(row)
    return full
  }

  #take(): Rows[] {
    const rows = this.#rows
    this.#rows = []
    if (rows.length === 0) return []
    return [{ format: this.#format as RowFormat, text: `${this.#header}${rows.join('\n')}\n`, count: rows.length }]
  }
}

/** A row of LIBSVM. @param pixels bytes from 0 to 255; zeros are left out @param label undefined for a row to predict */
export function imageRow(pixels: Uint8Array, label: number | undefined): string {
  const features: string[] = []
  pixels.forEach((byte, index) => {
    if (byte > 0) features.push(`${index + 1}:${Math.fround(byte / 255)}`)
  })
  return [label ?? '', ...features].join(' ')
}

/** Where the page was loaded from. */
interface Origin {
  readonly protocol: string
  /** Name or address, IPv6 in brackets. */
  readonly hostname: string
  /** Empty for the default one. */
  readonly port: string
}

/** The address of the HTTP server, which takes WebSockets for its peer. @param id of the peer */
export function originAddress({ protocol, hostname, port }: Origin, id: string): string {
  const isSecure = protocol === 'https:'
  const host = hostname.replace(/^\[|\]$/g, '')
  const kind = host.includes(':') ? 'ip6' : /^[\d.]+$/.test(host) ? 'ip4' : 'dns'
  return `/${kind}/${host}/tcp/${port || (isSecure ? 443 : 80)}${isSecure ? '/tls' : ''}/ws/p2p/${id}`
}
