"""What several formats share: messages of model APIs, what tools do, changes of files, a state told in patches."""
