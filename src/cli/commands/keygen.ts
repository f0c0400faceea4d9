/** `admb keygen`: network keys, HTTP tokens, and identities for allow-lists. */

import { writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { fileProblem } from '../../base/errors.js'
import { generateToken } from '../../server/roles.js'
import { Store } from '../../storage/index.js'
import { UsageError } from '../errors.js'
import { add } from '../options/command.js'
import type { Flags } from '../options/table.js'
import { print, printJson } from '../output/output.js'

export function keygenCommand(program: Command): Command {
  const command = program.command('keygen')
  add(
    command,
    'keygen network',
    { summary: 'a network key, with a network id: only peers that have it can connect' },
    networkKey
  )
  add(command, 'keygen token', { summary: 'a token for HTTP: only requests that carry it are answered' }, token)
  add(
    command,
    'keygen identity',
    { summary: 'an identity in a new state directory; prints the peer id for allow-lists' },
    identity
  )
  return command.addHelpText(
    'after',
    `
Examples:
  admb keygen network --out net.key
  admb keygen token --out http.token
  admb keygen token --role predict --out predict.token
  admb keygen identity --dir state >> allowed.txt`
  )
}

async function networkKey({ out, id: given, json }: Flags<'keygen network'>): Promise<void> {
  const { generateNetworkKey, networkIdIn } = await import('../../network/index.js')
  const key = generateNetworkKey(given)
  const id = networkIdIn(key)
  await writeSecret(out, key)
  if (json) printJson({ command: 'keygen', kind: 'network', file: out, id })
  else print(`wrote ${out}: copy it to every peer over a secure channel and start them with --network-key ${out}`)
}

async function token({ out, role, json }: Flags<'keygen token'>): Promise<void> {
  await writeSecret(out, `${generateToken(role)}\n`)
  if (json) printJson({ command: 'keygen', kind: 'token', role, file: out })
  else print(`wrote ${out}: start the peer with --http-token-file ${out}, and give the token to its HTTP clients`)
}

/** Readable by this user only. @throws UsageError */
async function writeSecret(out: string, content: string | Uint8Array): Promise<void> {
  try {
    await writeFile(out, content, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new UsageError(`${out} already exists and is not overwritten: give another --out`)
    throw new UsageError(`cannot write ${out} (${fileProblem(error)}): check the path after --out`)
  }
}

async function identity({ dir, json }: Flags<'keygen identity'>): Promise<void> {
  const { encodeIdentityKey, generateIdentityKey, peerIdOf } = await import('../../network/index.js')
  const store = await Store.open(dir)
  try {
    if (store.identity)
      throw new UsageError(`${dir} already holds an identity, which is not overwritten: give another --dir`)
    const key = await generateIdentityKey()
    await store.create(encodeIdentityKey(key))
    if (json) printJson({ command: 'keygen', kind: 'identity', id: peerIdOf(key), dir })
    else print(peerIdOf(key))
  } finally {
    await store.close()
  }
}
