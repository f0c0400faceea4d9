/** Where a layer file is, and whether the model fits. */
import { mkdtempSync, rmSync, statfsSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { formatBytes, formatExcess } from '../../base/errors.js'
import { OptionError } from '../../learning/index.js'
import type { Execution } from '../executor/types.js'
import { type DiskNeeds, type DiskOptions, diskNeeds, type ParamServerOptions } from '../training/param-server.js'
import { type Commit, LayersWriteError, layerFile, readCommit } from './layer-file.js'

/** Default bytes in memory. */
const HOST_MEMORY = 2 ** 30

/** The layer file of a run. */
export interface LayerPlace {
  readonly folder: string
  /** From which the run continues. @default it starts anew */
  readonly commit?: Commit
}

/** The last commit in a folder; undefined if there is none. @throws DamagedLayersError */
export function storedLayers(folder: string): (LayerPlace & { readonly commit: Commit }) | undefined {
  const commit = readCommit(folder)
  return commit && { folder, commit }
}

/** A folder that is removed when the process ends, for a model that is not kept. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'admb-layers-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/**
 * @param place @default a temporary folder
 * @throws OptionError if the memory is too small or the options do not go together; LayersWriteError if the disk is
 */
export function diskOptions(
  server: Omit<ParamServerOptions, 'initial'>,
  { hostMemory, workers = 1 }: Pick<Execution, 'hostMemory' | 'workers'>,
  place: LayerPlace = { folder: temporaryFolder() }
): DiskOptions {
  if (workers > 1) throw new OptionError('--store disk trains on one device: remove --workers')
  const { least, file } = diskNeeds(server)
  if (hostMemory !== undefined && hostMemory < least) {
    const [given, needed] = formatExcess(hostMemory, least)
    throw new OptionError(
      `--host-memory ${given} is too small for the model, whose largest layer needs ${needed} for itself and the layers that are read and written beside it`
    )
  }
  checkSpace(place.folder, file)
  return { ...place, memory: hostMemory ?? Math.max(HOST_MEMORY, least) }
}

/** Whether a layer file fits on the disk. */
function checkSpace(folder: string, needed: DiskNeeds['file']): void {
  let parent = folder
  while (statSync(parent, { throwIfNoEntry: false }) === undefined && dirname(parent) !== parent)
    parent = dirname(parent)
  const { bavail, bsize } = statfsSync(parent)
  const { blocks = 0 } = statSync(layerFile(folder), { throwIfNoEntry: false }) ?? {}
  const free = bavail * bsize + 512 * blocks
  if (free >= needed) return
  throw new LayersWriteError(folder, `it takes ${formatBytes(needed)}, and ${formatBytes(free)} are free`)
}
