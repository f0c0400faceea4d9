/** The content of the marker of a state directory. */
import { DamagedStateError } from './errors.js'

export const MARKER = 'admb.json'
const FORMAT = 1

export function markerText(): string {
  return `${JSON.stringify({ format: FORMAT })}\n`
}

/** @throws DamagedStateError */
export function parseMarker(directory: string, content: string): object {
  let marker: { format?: unknown }
  try {
    marker = JSON.parse(content)
  } catch {
    throw new DamagedStateError(directory, `${MARKER} is not valid JSON`)
  }
  if (marker.format !== FORMAT)
    throw new DamagedStateError(
      directory,
      `${MARKER} has format ${marker.format}, and this version reads format ${FORMAT}: use the version that wrote it`
    )
  return marker
}

/** The folder of the layer file, in which `admb train --store disk` keeps a predictor. */
export function layersFolder(directory: string): string {
  return `${directory}/layers`
}
