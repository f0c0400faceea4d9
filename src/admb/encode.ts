/** Frames into bytes. */
import { type Allocate, blockBytes, Writer } from './bytes.js'
import { type Runs, runsBetween } from './coverage.js'
import { FLAGS, FRAME_VERSION, type SentFrame, type Shapes } from './frame.js'
import type { ContributorTable } from './keys.js'
import type { PredictorName } from './name.js'
import type { Outgoing } from './outgoing.js'

const NONE: readonly number[] = []

export function encodeFrame(
  frame: SentFrame,
  shapes: Shapes,
  table: ContributorTable,
  outgoing: Outgoing,
  allocate?: Allocate
): Uint8Array {
  // Everybody whom the frame mentions must have a place before the list is written.
  placeOfMaker(frame.name, table, outgoing)
  const coverages: Runs[] = []
  for (const { parent, coverage } of frame.headers) {
    placeOfMaker(parent, table, outgoing)
    coverages.push(runsBetween(NONE, outgoing.segments([coverage])))
  }
  const { from, contributors } = outgoing.definitions(frame.sequence)
  const dense = (frame.sum ? 1 : 0) + (frame.content?.kind === 'whole' ? 2 : frame.content ? 1 : 0)
  let capacity = 512 + contributors.length * 64
  for (const block of shapes.parameters.blocks) capacity += dense * blockBytes(block.length)
  if (frame.content?.kind === 'whole') for (const block of shapes.state.blocks) capacity += blockBytes(block.length)
  const out = new Writer(capacity)
  out.byte(FRAME_VERSION)
  out.byte(
    (frame.ask ? FLAGS.ask : 0) |
      (frame.content?.kind === 'whole' ? FLAGS.whole : 0) |
      (frame.content?.kind === 'step' ? FLAGS.step : 0) |
      (frame.sum ? FLAGS.sum : 0) |
      (contributors.length > 0 ? FLAGS.definitions : 0)
  )
  out.integer(frame.session)
  out.integer(frame.sequence)
  out.integer(frame.received)
  out.integer(frame.heldSum)
  if (contributors.length > 0) {
    out.integer(from)
    out.integer(contributors.length)
    for (const contributor of contributors) {
      const { origin, incarnation } = table.contributor(contributor)
      out.string(origin)
      out.integer(incarnation)
    }
  }
  writeName(out, frame.name, table, outgoing)
  if (frame.content) {
    out.integer(frame.headers.length)
    for (let i = 0; i < coverages.length; i++) {
      const { count, parent } = frame.headers[i]
      out.integer(count)
      writeRuns(out, coverages[i])
      writeName(out, parent, table, outgoing)
    }
    if (frame.content.kind === 'whole') {
      out.blocks(frame.content.parameters)
      out.blocks(frame.content.average)
      out.blocks(frame.content.state)
    } else out.blocks(frame.content.sum)
  }
  if (frame.sum) {
    out.integer(frame.sum.base)
    writeRuns(out, frame.sum.changes)
    out.integer(frame.sum.count)
    out.blocks(frame.sum.sum)
  }
  return out.finish(allocate)
}

/** The place of a predictor's maker; −1 for the starting predictor's. */
function placeOfMaker(name: PredictorName, table: ContributorTable, outgoing: Outgoing): number {
  const maker = table.maker(name)
  return maker < 0 ? maker : outgoing.place(maker)
}

function writeName(out: Writer, name: PredictorName, table: ContributorTable, outgoing: Outgoing): void {
  out.integer(name.updates)
  const maker = placeOfMaker(name, table, outgoing)
  if (maker >= 0) out.integer(maker)
  out.hex(name.digest)
}

function writeRuns(out: Writer, runs: Runs): void {
  out.integer(runs.length / 3)
  for (let i = 0; i < runs.length; i += 3) {
    out.integer(runs[i])
    out.integer(runs[i + 1])
    out.step(runs[i + 2])
  }
}
