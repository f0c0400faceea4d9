/** Rows of text in requests: whole lines, with the header of CSV in front of each. */

export type RowFormat = 'libsvm' | 'jsonl' | 'csv'

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
  #rest = ''
  #format: RowFormat | undefined
  #header = ''
  #rows: string[] = []

  /** @param size rows in a request */
  constructor(size: number) {
    this.#size = size
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
    this.#rest = ''
    return [...last, ...this.#take()]
  }

  #line(line: string): Rows[] {
    const previous = this.#rows.at(-1)
    // A quoted field of CSV may contain line ends.
    if (this.#format === 'csv' && previous !== undefined && isOpen(previous)) {
      this.#rows[this.#rows.length - 1] = `${previous}\n${line}`
    } else {
      if (previous !== undefined && this.#rows.length >= this.#size) {
        const full = this.#take()
        this.#add(line)
        return full
      }
      this.#add(line)
    }
    return []
  }

  #add(line: string): void {
    if (line.trim() === '') return
    this.#format ??= formatOf(line)
    if (this.#format === 'csv' && this.#header === '') this.#header = `${line}\n`
    else this.#rows.push(line)
  }

  #take(): Rows[] {
    const rows = this.#rows
    this.#rows = []
    if (rows.length === 0) return []
    return [{ format: this.#format as RowFormat, text: `${this.#header}${rows.join('\n')}\n`, count: rows.length }]
  }
}

/** Whether a quote is open at the end. */
function isOpen(text: string): boolean {
  return (text.split('"').length - 1) % 2 === 1
}

/** A row of LIBSVM. @param pixels bytes from 0 to 255; zeros are left out @param label undefined for a row to predict */
export function imageRow(pixels: Uint8Array, label: number | undefined): string {
  const features: string[] = []
  pixels.forEach((byte, index) => {
    if (byte > 0) features.push(`${index + 1}:${Math.fround(byte / 255)}`)
  })
  return [label ?? '', ...features].join(' ')
}
