// Asking the server, and what people are told when it does not answer.

export async function getJson(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  const response = await fetch('.' + (query ? path + '?' + query : path));
  const body = await response.json();
  if (!response.ok) {
    const error = new Error(body.error ? body.error.message : response.statusText);
    error.status = response.status;
    throw error;
  }
  return body;
}

export function explain(error) {
  if (error instanceof TypeError) {
    return 'The server does not answer: the step has ended, or the tunnel is gone. ' +
           'Finished steps are shown by "sonde serve".';
  }
  return error.message;
}
