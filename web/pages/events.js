// Server-sent events (HTML, 9.2) of an answer to fetch: EventSource sends no header with a token.

// {kind, data} of each event, until the answer ends.
export async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let event = {kind: 'message', data: []};
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (rest + part.value).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (line === '') {
        if (event.data.length > 0) yield {kind: event.kind, data: event.data.join('\n')};
        event = {kind: 'message', data: []};
        continue;
      }
      const [, field, value] = line.match(/^([^:]*)(?:: ?(.*))?$/);
      if (field === 'event') event.kind = value;
      if (field === 'data') event.data.push(value);
    }
  }
}
