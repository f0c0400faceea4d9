/** Frames into bytes. */
import { type Allocate, blockBytes, Writer } from './bytes.js'
import type { Coverage } from './coverage.js'
import { FLAGS, FRAME_VERSION, type Outgoing, type SentFrame, type Shapes } from './frame.js'
import type { ContributorTable } from './keys.js'
import type { PredictorName } from './name.js'

const NOTHING: readonly number[] = []

export function encodeFrame(
  frame: SentFrame,
  shapes: Shapes,
  table: ContributorTable,
  outgoing: Outgoing,
  allocate?: Allocate
): Uint8Array {
  const definitions = undefinedIn(frame, table, outgoing)
  const dense = (frame.sum ? 1 : 0) + (frame.content?.kind === 'whole' ? 2 : frame.content ? 1 : 0)
  let capacity = 512 + definitions.length * 64
  for (const block of shapes.parameters.blocks) capacity += dense * blockBytes(block.length)
  if (frame.content?.kind === 'whole') for (const block of shapes.state.blocks) capacity += blockBytes(block.length)
  const out = new Writer(capacity)
  out.byte(FRAME_VERSION)
  out.byte(
    (frame.ask ? FLAGS.ask : 0) |
      (frame.content?.kind === 'whole' ? FLAGS.whole : 0) |
      (frame.content?.kind === 'step' ? FLAGS.step : 0) |
      (frame.sum ? FLAGS.sum : 0) |
      (definitions.length > 0 ? FLAGS.definitions : 0)
  )
  out.integer(frame.session)
  out.integer(frame.sequence)
  out.integer(frame.received)
  out.integer(frame.heldSum)
  if (definitions.length > 0) {
    out.integer(definitions.length)
    for (const contributor of definitions) {
      const { origin, incarnation } = table.contributor(contributor)
      out.integer(contributor)
      out.string(origin)
      out.integer(incarnation)
    }
  }
  writeName(out, frame.name, table)
  if (frame.content) {
    out.integer(frame.headers.length)
    for (const header of frame.headers) {
      out.integer(header.count)
      writeCoverage(out, header.coverage)
      writeName(out, header.parent, table)
    }
    if (frame.content.kind === 'whole') {
      out.blocks(frame.content.parameters)
      out.blocks(frame.content.average)
      out.blocks(frame.content.state)
    } else out.blocks(frame.content.sum)
  }
  if (frame.sum) {
    out.integer(frame.sum.base)
    const { changed } = frame.sum
    out.integer(changed.length / 2)
    for (let i = 0, next = 0; i < changed.length; i += 2) {
      out.step(changed[i] - next)
      out.integer(changed[i + 1])
      next = changed[i] + 1
    }
    out.integer(frame.sum.count)
    out.blocks(frame.sum.sum)
  }
  return out.finish(allocate)
}

function writeName(out: Writer, name: PredictorName, table: ContributorTable): void {
  out.integer(name.updates)
  const maker = table.maker(name)
  if (maker >= 0) out.integer(maker)
  out.hex(name.digest)
}

function writeCoverage(out: Writer, { contributors, segments }: Coverage): void {
  out.integer(segments.length)
  let next = 0
  for (let i = 0; i < segments.length; i++) {
    out.step(contributors[i] - next)
    out.integer(segments[i])
    next = contributors[i] + 1
  }
}

/** Contributor numbers that the frame's bytes mention and the other end may not know, each once. */
function undefinedIn(
  { name, headers, sum }: SentFrame,
  table: ContributorTable,
  outgoing: Outgoing
): readonly number[] {
  let numbers: number[] | undefined
  const maker = table.maker(name)
  if (maker >= 0 && outgoing.undefined(maker)) numbers = [maker]
  for (const { parent, coverage } of headers) {
    const parentsMaker = table.maker(parent)
    if (parentsMaker >= 0 && outgoing.undefined(parentsMaker)) {
      numbers ??= []
      numbers.push(parentsMaker)
    }
    for (const contributor of coverage.contributors) {
      if (!outgoing.undefined(contributor)) continue
      numbers ??= []
      numbers.push(contributor)
    }
  }
  const changed = sum?.changed ?? NOTHING
  for (let i = 0; i < changed.length; i += 2) {
    if (!outgoing.undefined(changed[i])) continue
    numbers ??= []
    numbers.push(changed[i])
  }
  return numbers ?? NOTHING
}
