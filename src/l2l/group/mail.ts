/**
 * Carries the messages of a pipeline's stages over a line. Both ends have a port for the stage above and one for the stage below: at the
 * worker those of its thread, at the peer those of the neighbouring stages.
 */
import { type Mail, type StagePorts, wakeStages } from '../workers/worker-handle.js'

/** Largest part of a message, in bytes: activations may be larger than what a line admits for weights. */
const PART_BYTES = 1 << 19
/** Largest message, in bytes. */
const MAX_BYTES = 2 ** 31

/** Numbers follow, of outputs or gradients, from the stage above or below or to it. */
export interface MailPart extends Omit<Mail, 'values'> {
  readonly kind: 'mail'
  readonly side: keyof StagePorts
  /** Offset in bytes. */
  readonly at: number
}

export class MailCarrier {
  #ports: StagePorts | undefined
  /** Messages of which parts have arrived. */
  readonly #partial = new Map<MailPart['side'], Uint8Array<ArrayBuffer>>()

  /** @param cells shared with the stage that waits for messages */
  constructor(
    private readonly cells: Int32Array,
    private readonly send: (part: MailPart, bytes: readonly Uint8Array[]) => void
  ) {}

  /** Replaces the ports, which it then owns. */
  connect(ports: StagePorts): void {
    this.close()
    this.#ports = ports
    for (const side of ['above', 'below'] as const) {
      ports[side].on('message', ({ values, ...mail }: Mail) => {
        const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
        for (let at = 0; at === 0 || at < bytes.length; at += PART_BYTES) {
          this.send({ kind: 'mail', side, at, ...mail }, [bytes.subarray(at, at + PART_BYTES)])
        }
      })
    }
  }

  /** @returns whether the part is well-formed */
  deliver({ kind: _, side, at, ...mail }: MailPart, bytes: Uint8Array): boolean {
    const size = Array.isArray(mail.shape) ? mail.shape.reduce((product, n) => product * n, 4) : 0
    if (!(size > 0 && size <= MAX_BYTES && Number.isInteger(size / 4))) return false
    if (at === 0) this.#partial.set(side, new Uint8Array(size))
    const whole = this.#partial.get(side)
    if (whole?.length !== size || !Number.isInteger(at) || at < 0 || at + bytes.length > size) return false
    whole.set(bytes, at)
    if (at + bytes.length < size) return true
    this.#partial.delete(side)
    const { buffer } = whole
    const values = mail.dtype === 'int32' ? new Int32Array(buffer) : new Float32Array(buffer)
    this.#ports?.[side]?.postMessage({ ...mail, values }, [buffer])
    wakeStages(this.cells)
    return true
  }

  close(): void {
    this.#ports?.above.close()
    this.#ports?.below.close()
  }
}
